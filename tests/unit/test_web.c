/* The connections of a server, without an engine: what clients get while they wait. */
#include "config.h"

#include <sys/socket.h>

#include <errno.h>
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "engine/base/clock.h"
#include "src/serve/libmicrohttpd.h"
#include "src/serve/listen.h"
#include "src/serve/web.h"
#include "tests/lib/fail_with.h"

#define TIMEOUT_MS 60000

static struct listen_address address;
static struct rooms rooms;
static struct web *web;
static struct job *running;

/* --- the library --- */

static __typeof__(MHD_get_connection_info) *get_connection_info;

/* Version 1 of the library writes all that is asked of a connection to one place. */
static const union MHD_ConnectionInfo *in_one_place(struct MHD_Connection *connection,
                                                    enum MHD_ConnectionInfoType type, ...)
{
    static union MHD_ConnectionInfo place;
    const union MHD_ConnectionInfo *info = get_connection_info(connection, type);

    if (info == NULL)
        return NULL;
    place = *info;
    return &place;
}

const struct libmicrohttpd *__real_libmicrohttpd_load(struct err *e);
const struct libmicrohttpd *__wrap_libmicrohttpd_load(struct err *e);

/* The linker calls this instead. */
const struct libmicrohttpd *__wrap_libmicrohttpd_load(struct err *e)
{
    static struct libmicrohttpd changed;
    const struct libmicrohttpd *lib = __real_libmicrohttpd_load(e);

    if (lib == NULL)
        return NULL;
    changed = *lib;
    get_connection_info = lib->get_connection_info;
    changed.get_connection_info = in_one_place;
    return &changed;
}

/* --- the server --- */

/* The first job begins at once: nobody is before it. */
static bool take(void *ctx, struct job *j)
{
    (void)ctx;
    j->state = JOB_RUNS;
    running = j;
    return job_begin(j);
}

static void gone(void *ctx, struct job *j)
{
    (void)ctx;
    running = NULL;
    job_free(j);
}

static unsigned page(void *ctx, enum web_page which, uint64_t number, const char *body, size_t len,
                     struct json *out, struct err *e)
{
    (void)ctx, (void)which, (void)number, (void)body, (void)len, (void)e;
    json_object(out, NULL);
    json_end(out);
    return 200;
}

static void record(void *ctx, const struct web_record *r)
{
    (void)ctx, (void)r;
}

static void open_web(unsigned request_s)
{
    static const struct web_calls calls = { take, gone, page, record };
    static const struct reply_model model = { .id = "model", .n_ctx = 512 };
    struct err e = ERR_INIT;
    struct web_options o = { .is_loopback = true,
                             .request_bytes = 65536,
                             .request_s = request_s,
                             .model = &model,
                             .rooms = &rooms,
                             .calls = &calls };

    rooms = (struct rooms){ { 0, 1 << 20 }, { 0, 1 << 20 }, 1 << 18 };
    no_error(listen_parse(&address, "127.0.0.1:0", &e), &e);
    o.listen_fd = listen_open(&address, &e);
    if (o.listen_fd < 0)
        fail_with(&e);
    no_error(web_open(&web, &o, &e), &e);
}

/* --- clients --- */

static int client(const char *text)
{
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    assert_int_equal(connect(fd, (const struct sockaddr *)&address.at, address.len), 0);
    assert_int_equal(send(fd, text, strlen(text), 0), strlen(text));
    return fd;
}

/* Let the server do what it has to, once there is something or bytes come to fd. */
static void turn(int fd)
{
    struct pollfd fds[2 + WEB_FDS] = { { web_fd(web), POLLIN, 0 }, { fd, POLLIN, 0 } };
    size_t n = web_watch(web, fds + 2);
    int ms = web_wait_ms(web);

    assert_true(poll(fds, 2 + n, ms >= 0 && ms < TIMEOUT_MS ? ms : TIMEOUT_MS) > 0 ||
                (ms >= 0 && ms < TIMEOUT_MS));
    web_hung_up(web, fds + 2, n);
    web_run(web);
}

/* Run until a client has got a word, or the end for NULL.  Returns false if it got the end
 * first. */
static bool get(int fd, const char *word, char *buf, size_t size)
{
    size_t n = strlen(buf);

    while (word == NULL || strstr(buf, word) == NULL) {
        ssize_t got;

        assert_true(n + 1 < size);
        turn(fd);
        got = recv(fd, buf + n, size - n - 1, MSG_DONTWAIT);
        if (got == 0 || (got < 0 && errno == ECONNRESET))
            return word == NULL;
        if (got > 0)
            n += (size_t)got;
        buf[n] = '\0';
    }
    return true;
}

/* --- tests --- */

/* The prompt is not accepted yet: it is long, or a kept beginning is read. */
static void a_stream_that_has_not_begun_says_that_it_waits(void **state)
{
    static const struct {
        const char *path, *body, *waits;
    } forms[] = {
        { "/v1/chat/completions", "{\"stream\":true,\"messages\":[{\"role\":\"user\",\"content\":"
                                  "\"a\"}]}", "\n: waiting\n" },
        { "/v1/completions", "{\"stream\":true,\"prompt\":\"a\"}", "\n: waiting\n" },
        { "/v1/messages", "{\"stream\":true,\"max_tokens\":9,\"messages\":[{\"role\":\"user\","
                          "\"content\":\"a\"}]}", "\n: waiting\n" },
        { "/api/chat", "{\"messages\":[{\"role\":\"user\",\"content\":\"a\"}]}",
          "\"content\":\"\"" },
        { "/api/generate", "{\"prompt\":\"a\"}", "\"response\":\"\"" },
    };

    (void)state;
    open_web(1);
    for (size_t i = 0; i < sizeof forms / sizeof forms[0]; i++) {
        char text[1000], got[8000] = "";
        const char *first;
        struct err e = ERR_INIT;
        int fd;

        snprintf(text, sizeof text,
                 "POST %s HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n"
                 "Content-Length: %zu\r\n\r\n%s",
                 forms[i].path, strlen(forms[i].body), forms[i].body);
        fd = client(text);
        assert_true(get(fd, forms[i].waits, got, sizeof got));
        first = strstr(got, forms[i].waits);
        assert_non_null(running);
        running->has_begun = true;
        no_error(job_add(running, PIECE_TEXT, "Hey.", 4, &e), &e);
        job_end(running);
        web_changed(running);
        web_run(web); /* as the server does after each event of the engine */
        assert_true(get(fd, NULL, got, sizeof got));
        assert_true(first < strstr(got, "Hey."));
        close(fd);
    }
    web_close(web);
    assert_int_equal(rooms.answers.used, 0);
}

static const char health[] =
    "GET /health HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";

/* At the limit of connections, all but one are sending a request. */
static void a_new_connection_has_a_grace(void **state)
{
    static const char part[] = "POST /v1/completions HTTP/1.1\r\nHost: localhost\r\n"
                               "Content-Length: 1000\r\n\r\n{";
    int slow[WEB_CONNECTIONS - 1], idle, other;
    char got[2000] = "", its[2000] = "";
    uint64_t begun_ns;

    (void)state;
    open_web(3600);
    for (size_t i = 0; i < WEB_CONNECTIONS - 1; i++) {
        slow[i] = client(part);
        while (web_active(web) <= i)
            turn(slow[i]);
    }
    begun_ns = clock_ns();
    idle = client("");
    while (web_connections(web) < WEB_CONNECTIONS)
        turn(idle);
    other = client(health);
    assert_true(get(other, " 200 ", got, sizeof got));
    assert_true(clock_ns() - begun_ns >= WEB_GRACE_NS);
    assert_true(get(idle, NULL, its, sizeof its));
    assert_int_equal(its[0], '\0');
    assert_true(get(other, NULL, got, sizeof got));
    close(idle);
    close(other);

    /* And one that sends its request meanwhile is not closed. */
    begun_ns = clock_ns();
    idle = client("");
    while (web_connections(web) < WEB_CONNECTIONS)
        turn(idle);
    got[0] = '\0';
    other = client(health);
    web_run(web);
    if (clock_ns() - begun_ns < WEB_GRACE_NS) {
        assert_int_equal(send(idle, health, strlen(health), 0), strlen(health));
        assert_true(get(idle, " 200 ", its, sizeof its));
    }
    assert_true(get(other, " 200 ", got, sizeof got));
    close(idle);
    close(other);
    for (size_t i = 0; i < WEB_CONNECTIONS - 1; i++)
        close(slow[i]);
    web_close(web);
    assert_int_equal(rooms.requests.used, 0);
}

/* At the limit, all connections are used again and again, well within the grace. */
static void busy_connections_do_not_keep_others_out(void **state)
{
    static const char again[] = "GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n";
    int busy[WEB_CONNECTIONS], other;
    uint64_t begun_ns;
    bool is_served = false;

    (void)state;
    open_web(3600);
    for (size_t i = 0; i < WEB_CONNECTIONS; i++) {
        char got[2000] = "";

        busy[i] = client(again);
        assert_true(get(busy[i], " 200 ", got, sizeof got));
        assert_int_equal(send(busy[i], again, strlen(again), 0), strlen(again));
    }
    other = client(health);
    begun_ns = clock_ns();
    while (!is_served && clock_ns() - begun_ns < 20 * WEB_GRACE_NS) {
        for (size_t i = 0; i < WEB_CONNECTIONS; i++) {
            char rest[2000];
            ssize_t n = busy[i] < 0 ? -1 : recv(busy[i], rest, sizeof rest, MSG_DONTWAIT);

            if (n > 0 && send(busy[i], again, strlen(again), MSG_NOSIGNAL) > 0)
                continue;
            if (n >= 0) { /* it has given way */
                close(busy[i]);
                busy[i] = -1;
            }
        }
        turn(other);
        is_served = recv(other, &(char){ 0 }, 1, MSG_DONTWAIT) == 1;
    }
    assert_true(is_served);
    close(other);
    for (size_t i = 0; i < WEB_CONNECTIONS; i++)
        if (busy[i] >= 0)
            close(busy[i]);
    web_close(web);
}

static const char refused[] = "POST /v1/none HTTP/1.1\r\nHost: localhost\r\n"
                              "Transfer-Encoding: chunked\r\n\r\n";

/* Only its time has an end (below).  It takes no memory of requests, and has its reply. */
static void a_refused_body_of_any_length_is_dropped(void **state)
{
    static char chunk[7 + 65536 + 2] = "10000\r\n";
    size_t n_sent = 0, at = 0;
    char got[100] = "";
    int fd;

    (void)state;
    memset(chunk + 7, 'x', 65536);
    memcpy(chunk + 7 + 65536, "\r\n", 2);
    open_web(3600);
    fd = client(refused);
    while (n_sent < (size_t)80 << 20 || at != 0) {
        ssize_t n = send(fd, chunk + at, sizeof chunk - at, MSG_DONTWAIT | MSG_NOSIGNAL);

        assert_true(n > 0 || errno == EAGAIN);
        if (n > 0) {
            n_sent += (size_t)n;
            at = (at + (size_t)n) % sizeof chunk;
        }
        web_run(web);
        assert_int_equal(rooms.requests.used, 0);
    }
    while (send(fd, "0\r\n\r\n", 5, MSG_DONTWAIT | MSG_NOSIGNAL) != 5)
        web_run(web);
    while (recv(fd, got, sizeof got - 1, MSG_DONTWAIT) < 0 && errno == EAGAIN)
        web_run(web);
    assert_non_null(strstr(got, " 404 "));
    close(fd);
    web_close(web);
}

static void a_refused_body_has_the_time_of_a_request(void **state)
{
    char got[2000] = "";
    int fd;

    (void)state;
    open_web(1);
    fd = client(refused);
    assert_true(get(fd, NULL, got, sizeof got));
    assert_int_equal(got[0], '\0');
    close(fd);
    web_close(web);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_stream_that_has_not_begun_says_that_it_waits),
        cmocka_unit_test(a_new_connection_has_a_grace),
        cmocka_unit_test(busy_connections_do_not_keep_others_out),
        cmocka_unit_test(a_refused_body_of_any_length_is_dropped),
        cmocka_unit_test(a_refused_body_has_the_time_of_a_request),
    };

    return cmocka_run_group_tests_name("web", tests, NULL, NULL);
}
