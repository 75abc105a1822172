#include "config.h"

#include "engine/http/http.h"

#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>

#include "engine/base/clock.h"
#include "engine/base/lookalike.h"
#include "engine/base/small_file.h"
#include "engine/http/libcurl.h"

#define CONNECT_S      20
#define ERROR_BODY_MAX 65536               /* bytes of a page that goes with an error */
#define HEADERS_MAX    ((size_t)256 << 10) /* of all replies to a request */
#define PAUSE_FIRST_MS 250
#define PAUSE_MOST_MS  30000

struct http {
    const struct libcurl *lib;
    const struct http_words *words;
    CURLM *multi;
    struct curl_slist *token; /* the header with the token, or NULL */
    struct curl_slist *post;  /* the headers of requests with a body */
    char *endpoint;
    size_t origin_len; /* of endpoint: "https://huggingface.co" */
    int stop_fd;
    char *ca_file, *ca_folder;
    char *ca_text; /* all files of certificates, if there are several */
    void (*on_wait)(void *ctx, uint32_t left_s, const char *why);
    void *ctx;
    uint64_t hold_ns;   /* no request is started before */
    uint32_t said_s;    /* the last time left that on_wait was called with */
    char hold_why[200]; /* the reason for the pause */
};

/* The length of "scheme://host:port" at the start of a URL; 0: it has none. */
static size_t origin_length(const char *url)
{
    const char *host = strstr(url, "://");

    return host == NULL ? 0 : (size_t)(host - url) + 3 + strcspn(host + 3, "/?#");
}

static int check_endpoint(const struct http_words *w, const char *url, struct err *e)
{
    size_t scheme = strncasecmp(url, "https://", 8) == 0  ? 8
                    : strncasecmp(url, "http://", 7) == 0 ? 7
                                                          : 0;

    for (const char *c = url; *c != '\0'; c++)
        if ((unsigned char)*c <= ' ' || (unsigned char)*c >= 0x7f)
            scheme = 0;
    if (scheme == 0 || url[scheme] == '\0' || url[scheme] == '/' || strlen(url) > 512 ||
        strpbrk(url, "@?#") != NULL) {
        err_set(e, ERR_FORMAT, "%s: \"%.80s\" is not the address of %s; give one like %s",
                w->setting, url, w->server, w->example);
        return lookalike_explain(e, url);
    }
    return 0;
}

/* Append a header.  Returns false without memory. */
static bool add_header(const struct http *h, struct curl_slist **list, const char *header)
{
    struct curl_slist *longer = h->lib->slist_append(*list, header);

    if (longer != NULL)
        *list = longer;
    return longer != NULL;
}

static int make_headers(struct http *h, const char *token, struct err *e)
{
    char header[1200];

    /* Without "Expect:", libcurl waits for a leave to send a long body. */
    if (!add_header(h, &h->post, "Content-Type: application/json") ||
        !add_header(h, &h->post, "Expect:"))
        return err_memory(e, "a request");
    if (token == NULL || token[0] == '\0')
        return 0;
    for (const char *c = token; *c != '\0'; c++)
        if (*c <= ' ' || *c >= 0x7f || c - token > 1000)
            return err_set(e, ERR_FORMAT,
                           "the access token has a character that tokens do not have; check %s",
                           h->words->token);
    snprintf(header, sizeof header, "Authorization: Bearer %s", token);
    return add_header(h, &h->token, header) && add_header(h, &h->post, header)
               ? 0
               : err_memory(e, "a request");
}

/* Join the files of certificates: libcurl takes one file, or one text. */
static int read_authorities(struct http *h, const struct http_options *o, struct err *e)
{
    size_t used = 0;

    for (int i = 0; o->ca_files[1] != NULL && i < HTTP_CA_FILES && o->ca_files[i] != NULL;
         i++) {
        size_t n;
        char *text = small_file_read(o->ca_files[i], HTTP_CA_BYTES, &n, e), *larger;

        if (text == NULL)
            return -1;
        larger = realloc(h->ca_text, used + n + 2);
        if (larger != NULL) {
            h->ca_text = larger;
            memcpy(larger + used, text, n);
            memcpy(larger + used + n, "\n", 2);
            used += n + 1;
        }
        free(text);
        if (larger == NULL)
            return err_memory(e, "the certificates");
    }
    return 0;
}

/* Copy a text that may be missing. */
static int copy_text(char **to, const char *text, struct err *e)
{
    *to = text != NULL ? strdup(text) : NULL;
    return text == NULL || *to != NULL ? 0 : err_memory(e, "a connection");
}

int http_open(struct http **out, const struct http_options *o, struct err *e)
{
    const struct libcurl *lib;
    struct http *h;

    *out = NULL;
    if (check_endpoint(o->words, o->endpoint, e) != 0)
        return -1;
    lib = libcurl_load(e);
    if (lib == NULL)
        return -1;
    h = calloc(1, sizeof *h);
    if (h == NULL)
        return err_memory(e, "a connection");
    h->lib = lib;
    h->words = o->words;
    h->stop_fd = o->stop_fd;
    h->on_wait = o->on_wait;
    h->ctx = o->ctx;
    h->endpoint = strdup(o->endpoint);
    h->multi = lib->multi_init();
    if (h->endpoint == NULL || h->multi == NULL) {
        http_close(h);
        return err_memory(e, "a connection");
    }
    h->origin_len = origin_length(h->endpoint);
    /* Several ranges over one connection would share its rate. */
    lib->multi_setopt(h->multi, CURLMOPT_PIPELINING, (long)CURLPIPE_NOTHING);
    if (make_headers(h, o->token, e) != 0 || copy_text(&h->ca_file, o->ca_files[0], e) != 0 ||
        copy_text(&h->ca_folder, o->ca_folder, e) != 0 || read_authorities(h, o, e) != 0) {
        http_close(h);
        return -1;
    }
    *out = h;
    return 0;
}

void http_close(struct http *h)
{
    if (h == NULL)
        return;
    if (h->multi != NULL)
        h->lib->multi_cleanup(h->multi);
    h->lib->slist_free_all(h->token);
    h->lib->slist_free_all(h->post);
    free(h->endpoint);
    free(h->ca_file);
    free(h->ca_folder);
    free(h->ca_text);
    free(h);
}

const char *http_that(const struct http *h)
{
    return h->words->that;
}

bool http_is_own(const struct http *h, const char *url)
{
    return origin_length(url) == h->origin_len &&
           strncasecmp(url, h->endpoint, h->origin_len) == 0;
}

/* ---- headers ---- */

static bool parse_number(const char **p, uint64_t *out)
{
    uint64_t n = 0;
    const char *c = *p;

    if (*c < '0' || *c > '9')
        return false;
    for (; *c >= '0' && *c <= '9'; c++)
        if (__builtin_mul_overflow(n, 10, &n) ||
            __builtin_add_overflow(n, (uint64_t)(*c - '0'), &n))
            return false;
    *p = c;
    *out = n;
    return true;
}

/* "bytes 0-99/1234" */
static void read_range(struct http_reply *r, const char *p)
{
    uint64_t from, last, total;

    if (strncasecmp(p, "bytes ", 6) != 0)
        return;
    p += 6;
    if (!parse_number(&p, &from) || *p++ != '-' || !parse_number(&p, &last) || *p++ != '/' ||
        !parse_number(&p, &total) || last == UINT64_MAX || *p != '\0')
        return;
    r->from = from;
    r->to = last + 1;
    r->total = total;
}

/* Seconds to wait, at most those of a month. */
static uint32_t read_seconds(const char *value)
{
    const uint32_t most = 30 * 86400;
    uint64_t n = 0;

    if (value[0] < '0' || value[0] > '9')
        return 0;
    return parse_number(&value, &n) && n < most ? (uint32_t)n : most;
}

/* "Text/Event-Stream; charset=utf-8" is "text/event-stream". */
static void read_type(struct http_reply *r, const char *value)
{
    size_t n = strcspn(value, "; \t");

    n = n < sizeof r->type ? n : sizeof r->type - 1;
    for (size_t i = 0; i < n; i++)
        r->type[i] = (char)(value[i] >= 'A' && value[i] <= 'Z' ? value[i] + 32 : value[i]);
    r->type[n] = '\0';
}

static void read_header(const struct libcurl *lib, struct http_reply *r, const char *name,
                        const char *value)
{
    const char *part;
    uint64_t n;

    if (strcasecmp(name, "Content-Length") == 0) {
        if (parse_number(&value, &n))
            r->length = n;
    } else if (strcasecmp(name, "Content-Range") == 0) {
        read_range(r, value);
    } else if (strcasecmp(name, "Content-Type") == 0) {
        r->is_page = strncasecmp(value, "text/html", 9) == 0;
        read_type(r, value);
    } else if (strcasecmp(name, "Location") == 0) {
        snprintf(r->location, sizeof r->location, "%.255s", value);
    } else if (strcasecmp(name, "X-Error-Code") == 0) {
        snprintf(r->error_code, sizeof r->error_code, "%.31s", value);
    } else if (strcasecmp(name, "Retry-After") == 0) {
        r->retry_after_s = read_seconds(value);
        if (r->retry_after_s == 0)
            r->retry_at_s = (int64_t)lib->getdate(value, NULL);
    } else if (strcasecmp(name, "Date") == 0) {
        r->date_s = (int64_t)lib->getdate(value, NULL);
    } else if (strcasecmp(name, "RateLimit") == 0) {
        /* "api";r=0;t=120: no requests are left, for so many seconds */
        part = strstr(value, ";t=");
        r->limited_s = part != NULL ? read_seconds(part + 3) : 0;
    }
}

static void clear_reply(struct http_reply *r)
{
    *r = (struct http_reply){
        .length = HTTP_UNKNOWN, .from = HTTP_UNKNOWN, .to = HTTP_UNKNOWN, .total = HTTP_UNKNOWN
    };
}

/* Called for each line of the headers of each reply; a status line begins another reply. */
static size_t on_header(char *data, size_t size, size_t n, void *ctx)
{
    struct http_request *r = ctx;
    char line[512], *colon;
    size_t len = size * n;

    r->n_header += len;
    if (r->n_header > HEADERS_MAX)
        return 0;
    if (len >= 5 && strncasecmp(data, "HTTP/", 5) == 0) {
        clear_reply(&r->reply);
        return len;
    }
    if (len >= sizeof line || memchr(data, '\0', len) != NULL)
        return len;
    memcpy(line, data, len);
    line[len] = '\0';
    colon = strchr(line, ':');
    if (colon == NULL)
        return len;
    *colon++ = '\0';
    colon += strspn(colon, " \t");
    for (size_t end = strlen(colon); end > 0 && strchr("\r\n \t", colon[end - 1]) != NULL;)
        colon[--end] = '\0';
    read_header(r->http->lib, &r->reply, line, colon);
    return len;
}

/* Status and address of the reply that has begun. */
static void read_info(struct http_request *r)
{
    const struct libcurl *lib = r->http->lib;
    char *url = NULL;

    if (r->reply.status != 0)
        return;
    lib->easy_getinfo(r->handle, CURLINFO_RESPONSE_CODE, &r->reply.status);
    lib->easy_getinfo(r->handle, CURLINFO_EFFECTIVE_URL, &url);
    if (url != NULL && strlen(url) < sizeof r->reply.url)
        memcpy(r->reply.url, url, strlen(url) + 1);
}

/* Did the server receive too many requests?  Some say so with a status of their own. */
static bool is_limited(long status)
{
    return status == 429 || status == 420;
}

/* How long the server asks to wait: seconds, a date, or the end of a limit.  The server's own
 * clock counts. */
static void read_wait(struct http_reply *r)
{
    int64_t now = r->date_s > 0 ? r->date_s : (int64_t)time(NULL);

    if (r->retry_at_s > now)
        r->retry_after_s =
            r->retry_at_s - now < INT32_MAX ? (uint32_t)(r->retry_at_s - now) : INT32_MAX;
    if (r->retry_after_s == 0 && is_limited(r->status))
        r->retry_after_s = r->limited_s;
}

static bool wants_stop(int fd)
{
    struct pollfd p = { .fd = fd, .events = POLLIN };

    return fd >= 0 && poll(&p, 1, 0) > 0;
}

static size_t on_body(char *data, size_t size, size_t n, void *ctx)
{
    struct http_request *r = ctx;
    size_t len = size * n, taken;

    read_info(r);
    if (r->reply.status / 100 != 2 && !r->takes_errors) {
        r->n_ignored += len;
        return r->n_ignored <= ERROR_BODY_MAX ? len : 0;
    }
    if (r->reply.is_page && !r->takes_errors) /* finish() explains it */
        return 0;
    /* libcurl goes on reading as long as bytes arrive fast enough: only a pause ends that. */
    taken = wants_stop(r->http->stop_fd) ? HTTP_PAUSE : r->sink(r, data, len);
    if (taken == HTTP_PAUSE)
        return CURL_WRITEFUNC_PAUSE;
    if (taken == HTTP_STOP) {
        r->is_stopped = true;
        return 0;
    }
    return taken;
}

/* ---- requests ---- */

static void set_bounds(const struct libcurl *lib, CURL *c, const struct http_request *r)
{
    bool is_https = strncasecmp(r->url, "https:", 6) == 0;

    lib->easy_setopt(c, CURLOPT_NOSIGNAL, 1L);
    lib->easy_setopt(c, CURLOPT_QUICK_EXIT, 1L);
    lib->easy_setopt(c, CURLOPT_CONNECTTIMEOUT, (long)CONNECT_S);
    if (r->is_patient) { /* a server that is gone without a word is noticed by the kernel */
        lib->easy_setopt(c, CURLOPT_TCP_KEEPALIVE, 1L);
        lib->easy_setopt(c, CURLOPT_TCP_KEEPIDLE, (long)HTTP_STALL_S);
        lib->easy_setopt(c, CURLOPT_TCP_KEEPINTVL, (long)HTTP_STALL_S / 3);
    } else {
        lib->easy_setopt(c, CURLOPT_LOW_SPEED_LIMIT, 1L);
        lib->easy_setopt(c, CURLOPT_LOW_SPEED_TIME, (long)HTTP_STALL_S);
    }
    lib->easy_setopt(c, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1);
    lib->easy_setopt(c, CURLOPT_FOLLOWLOCATION, r->body == NULL ? 1L : 0L);
    lib->easy_setopt(c, CURLOPT_MAXREDIRS, (long)HTTP_REDIRECTS);
    lib->easy_setopt(c, CURLOPT_PROTOCOLS_STR, "http,https");
    lib->easy_setopt(c, CURLOPT_REDIR_PROTOCOLS_STR, is_https ? "https" : "http,https");
    lib->easy_setopt(c, CURLOPT_BUFFERSIZE, 262144L);
}

/* A company's own authority also signs for its proxy. */
static void set_authorities(const struct http *h, CURL *c)
{
    struct curl_blob all = { h->ca_text, h->ca_text != NULL ? strlen(h->ca_text) : 0,
                             CURL_BLOB_NOCOPY };

    /* Some libraries for TLS take files only. */
    if (h->ca_text == NULL || h->lib->easy_setopt(c, CURLOPT_CAINFO_BLOB, &all) != CURLE_OK ||
        h->lib->easy_setopt(c, CURLOPT_PROXY_CAINFO_BLOB, &all) != CURLE_OK) {
        if (h->ca_file != NULL) {
            h->lib->easy_setopt(c, CURLOPT_CAINFO, h->ca_file);
            h->lib->easy_setopt(c, CURLOPT_PROXY_CAINFO, h->ca_file);
        }
    }
    if (h->ca_folder != NULL) {
        h->lib->easy_setopt(c, CURLOPT_CAPATH, h->ca_folder);
        h->lib->easy_setopt(c, CURLOPT_PROXY_CAPATH, h->ca_folder);
    }
}

static void set_range(const struct libcurl *lib, CURL *c, const struct http_request *r)
{
    char range[48];

    if (r->to == 0)
        return;
    snprintf(range, sizeof range, "%" PRIu64 "-%" PRIu64, r->from, r->to - 1);
    lib->easy_setopt(c, CURLOPT_RANGE, range);
}

static void set_body(const struct libcurl *lib, CURL *c, const struct http_request *r)
{
    if (r->body == NULL)
        return;
    lib->easy_setopt(c, CURLOPT_POST, 1L);
    lib->easy_setopt(c, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)r->body_len);
    lib->easy_setopt(c, CURLOPT_POSTFIELDS, r->body); /* not copied */
}

int http_start(struct http *h, struct http_request *r, struct err *e)
{
    const struct libcurl *lib = h->lib;
    CURL *c = lib->easy_init();

    r->handle = c;
    r->http = h;
    r->is_done = r->is_stopped = r->is_fatal = false;
    r->err = (struct err)ERR_INIT;
    r->message[0] = '\0';
    r->n_header = r->n_ignored = 0;
    clear_reply(&r->reply);
    if (c == NULL)
        return err_memory(e, "a request");
    set_bounds(lib, c, r);
    set_range(lib, c, r);
    set_body(lib, c, r);
    set_authorities(h, c);
    lib->easy_setopt(c, CURLOPT_URL, r->url);
    lib->easy_setopt(c, CURLOPT_USERAGENT, "memwall/" PACKAGE_VERSION);
    lib->easy_setopt(c, CURLOPT_ERRORBUFFER, r->message);
    lib->easy_setopt(c, CURLOPT_HEADERFUNCTION, on_header);
    lib->easy_setopt(c, CURLOPT_HEADERDATA, r);
    lib->easy_setopt(c, CURLOPT_WRITEFUNCTION, on_body);
    lib->easy_setopt(c, CURLOPT_WRITEDATA, r);
    lib->easy_setopt(c, CURLOPT_PRIVATE, r);
    /* libcurl drops this header when a redirect leads to another host, port or scheme. */
    if (http_is_own(h, r->url))
        lib->easy_setopt(c, CURLOPT_HTTPHEADER, r->body == NULL ? h->token : h->post);
    if (lib->multi_add_handle(h->multi, c) != CURLM_OK) {
        lib->easy_cleanup(c);
        r->handle = NULL;
        return err_memory(e, "a request");
    }
    return 0;
}

void http_end(struct http_request *r)
{
    const struct libcurl *lib = r->handle != NULL ? r->http->lib : NULL;

    if (lib == NULL)
        return;
    lib->multi_remove_handle(r->http->multi, r->handle);
    lib->easy_cleanup(r->handle);
    r->handle = NULL;
}

void http_resume(struct http_request *r)
{
    if (!r->is_done)
        r->http->lib->easy_pause(r->handle, CURLPAUSE_CONT);
}

/* The host of a URL, for messages. */
static void host_of(const char *url, char *buf, size_t n)
{
    const char *host = strstr(url, "://");

    host = host != NULL ? host + 3 : url;
    snprintf(buf, n, "%.*s", (int)strcspn(host, "/?#"), host);
}

/* Advise what to do about an error; "" for most. */
static const char *advice_of(const struct http_request *r, CURLcode code)
{
    bool is_plain = strncmp(r->url, "http:", 5) == 0;

    if (code == CURLE_SSL_CONNECT_ERROR)
        return "; if this port does not speak TLS, its address begins with http://";
    /* The answer to plain HTTP is a message of TLS, or nothing. */
    if (is_plain && r->reply.status == 0 &&
        (code == CURLE_UNSUPPORTED_PROTOCOL || code == CURLE_GOT_NOTHING ||
         code == CURLE_WEIRD_SERVER_REPLY || code == CURLE_RECV_ERROR))
        return "; if this port speaks TLS, its address begins with https://";
    return "";
}

static void finish(struct http_request *r, CURLcode code)
{
    bool is_certificate =
        code == CURLE_PEER_FAILED_VERIFICATION || code == CURLE_SSL_CACERT_BADFILE;
    char host[128];

    read_info(r);
    read_wait(&r->reply);
    r->is_done = true;
    if (r->reply.is_page && r->reply.status / 100 == 2 && !r->takes_errors) {
        r->is_fatal = true;
        http_refuse_page(r->http, &r->reply, &r->err);
        return;
    }
    if (code == CURLE_OK || r->is_stopped || r->n_ignored > ERROR_BODY_MAX)
        return;
    r->is_fatal = is_certificate || r->n_header > HEADERS_MAX || code == CURLE_URL_MALFORMAT ||
                  code == CURLE_UNSUPPORTED_PROTOCOL || code == CURLE_TOO_MANY_REDIRECTS ||
                  code == CURLE_COULDNT_RESOLVE_PROXY;
    host_of(r->reply.url[0] != '\0' ? r->reply.url : r->url, host, sizeof host);
    err_set(&r->err, ERR_IO, "%.60s: %.90s%s%s", host,
            r->n_header > HEADERS_MAX ? "the headers of the answer are too long"
            : r->message[0] != '\0'   ? r->message
                                      : r->http->lib->easy_strerror(code),
            is_certificate ? "; check the clock and the package ca-certificates, or "
                           : advice_of(r, code),
            is_certificate ? r->http->words->trust : "");
}

/* Returns whether a request is done. */
static bool take_finished(struct http *h)
{
    bool any = false;
    CURLMsg *msg;
    int left;

    while ((msg = h->lib->multi_info_read(h->multi, &left)) != NULL) {
        struct http_request *r = NULL;

        if (msg->msg != CURLMSG_DONE)
            continue;
        h->lib->easy_getinfo(msg->easy_handle, CURLINFO_PRIVATE, &r);
        finish(r, msg->data.result);
        any = true;
    }
    return any;
}

/* Say how long a pause still lasts, once a second, and that it is over. */
static void say_hold(struct http *h)
{
    uint32_t left_s = ((uint32_t)http_held_ms(h) + 999) / 1000;

    if (h->on_wait != NULL && left_s != h->said_s)
        h->on_wait(h->ctx, left_s, left_s > 0 ? h->hold_why : NULL);
    h->said_s = left_s;
}

int http_wait(struct http *h, int ms, struct err *e)
{
    struct curl_waitfd stop = { .fd = h->stop_fd, .events = CURL_WAIT_POLLIN };
    CURLMcode code;
    int n;

    say_hold(h);

    if (wants_stop(h->stop_fd))
        return err_set(e, ERR_CANCELLED, "stopped");
    code = h->lib->multi_perform(h->multi, &n);
    if (code == CURLM_OK && !take_finished(h)) {
        code = h->lib->multi_poll(h->multi, &stop, h->stop_fd >= 0, ms, &n);
        if (code == CURLM_OK)
            code = h->lib->multi_perform(h->multi, &n);
        take_finished(h);
    }
    if (code != CURLM_OK)
        return err_set(e, ERR_IO, "libcurl: %s", h->lib->multi_strerror(code));
    return 0;
}

int http_refuse_page(const struct http *h, const struct http_reply *reply, struct err *e)
{
    char host[100];

    host_of(reply->url, host, sizeof host);
    return err_set(e, ERR_IO,
                   "%.60s answered with a web page, not with data of %s; a proxy or a login "
                   "page may be in between, or %s is not the address of %s",
                   host, h->words->server, h->words->setting, h->words->server);
}

bool http_is_transient(const struct http_request *r)
{
    long s = r->reply.status;

    if (r->err.code != ERR_NONE)
        return !r->is_fatal;
    return s == 408 || s == 425 || is_limited(s) ||
           (s / 100 == 5 && s != 501 && s != 505 && s != 511);
}

void http_status_text(const struct http_reply *reply, char *buf, size_t n)
{
    uint32_t s = reply->retry_after_s;
    char what[64];

    if (is_limited(reply->status))
        snprintf(what, sizeof what, "received too many requests");
    else
        snprintf(what, sizeof what, "answered with status %ld", reply->status);
    if (s <= HTTP_HOLD_S)
        snprintf(buf, n, "%s", what);
    else if (s < 7200)
        snprintf(buf, n, "%s and asks to wait %u minutes", what, (s + 59) / 60);
    else
        snprintf(buf, n, "%s and asks to wait %u hours", what, (s + 3599) / 3600);
}

bool http_hold(struct http *h, uint32_t n, const struct http_request *r)
{
    uint64_t ms = (uint64_t)PAUSE_FIRST_MS << (n < 16 ? n - 1 : 15), until;
    char host[100], why[80];

    if (ms > PAUSE_MOST_MS)
        ms = PAUSE_MOST_MS;
    if (r->reply.retry_after_s > HTTP_HOLD_S)
        return false;
    if (r->reply.retry_after_s > 0)
        ms = (uint64_t)r->reply.retry_after_s * 1000;
    until = clock_ns() + ms * 1000000;
    if (until <= h->hold_ns)
        return true;
    h->hold_ns = until;
    host_of(r->reply.url[0] != '\0' ? r->reply.url : r->url, host, sizeof host);
    http_status_text(&r->reply, why, sizeof why);
    if (r->err.code != ERR_NONE)
        snprintf(h->hold_why, sizeof h->hold_why, "%.*s", (int)sizeof h->hold_why - 1,
                 r->err.what);
    else
        snprintf(h->hold_why, sizeof h->hold_why, "%s %s", host, why);
    return true;
}

int http_held_ms(const struct http *h)
{
    uint64_t now = clock_ns();

    return h->hold_ns > now ? (int)((h->hold_ns - now) / 1000000) + 1 : 0;
}
