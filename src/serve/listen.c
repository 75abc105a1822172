/* See listen.h. */
#include "config.h"

#include "src/serve/listen.h"

#include <arpa/inet.h>
#include <netinet/in.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "engine/base/keyed_hash.h"

#define BACKLOG 64

static bool is_loopback_4(struct in_addr a)
{
    return ntohl(a.s_addr) >> 24 == 127;
}

static bool is_loopback_6(const struct in6_addr *a)
{
    struct in_addr mapped;

    if (IN6_IS_ADDR_LOOPBACK(a))
        return true;
    memcpy(&mapped, a->s6_addr + 12, sizeof mapped);
    return IN6_IS_ADDR_V4MAPPED(a) && is_loopback_4(mapped);
}

static int parse_port(const char *text, uint16_t *out, struct err *e)
{
    char *end;
    unsigned long n = strtoul(text, &end, 10);

    if (text[0] < '0' || text[0] > '9' || *end != '\0' || n > 65535)
        return err_set(e, ERR_ARGUMENT, "the port \"%.20s\" is not a number from 0 to 65535",
                       text);
    *out = (uint16_t)n;
    return 0;
}

int listen_parse(struct listen_address *out, const char *text, struct err *e)
{
    struct sockaddr_in *four = (struct sockaddr_in *)&out->at;
    struct sockaddr_in6 *six = (struct sockaddr_in6 *)&out->at;
    const char *colon = strrchr(text, ':');
    char host[LISTEN_TEXT];
    size_t n = colon != NULL ? (size_t)(colon - text) : 0;
    uint16_t port = 0;

    memset(out, 0, sizeof *out);
    if (n == 0 || n >= sizeof host)
        return err_set(e, ERR_ARGUMENT, "\"%.60s\" is not ADDRESS:PORT", text);
    memcpy(host, text, n);
    host[n] = '\0';
    if (parse_port(colon + 1, &port, e) != 0)
        return -1;
    if (strcmp(host, "localhost") == 0)
        strcpy(host, "127.0.0.1");
    if (inet_pton(AF_INET, host, &four->sin_addr) == 1) {
        four->sin_family = AF_INET;
        four->sin_port = htons(port);
        out->len = sizeof *four;
        out->is_loopback = is_loopback_4(four->sin_addr);
        return 0;
    }
    if (host[0] == '[' && host[n - 1] == ']') {
        host[n - 1] = '\0';
        if (inet_pton(AF_INET6, host + 1, &six->sin6_addr) == 1) {
            six->sin6_family = AF_INET6;
            six->sin6_port = htons(port);
            out->len = sizeof *six;
            out->is_loopback = is_loopback_6(&six->sin6_addr);
            return 0;
        }
    }
    return err_set(e, ERR_ARGUMENT,
                   "\"%.60s\" is not an address; write it as 127.0.0.1 or [::1]", text);
}

int listen_open(struct listen_address *a, struct err *e)
{
    char text[LISTEN_TEXT];
    int one = 1, buffer = LISTEN_BUFFER, fd;

    listen_text(a, text);
    fd = socket(a->at.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return err_sys(e, "cannot open a socket");
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
    /* Connections inherit these.  Their buffers are charged like other memory, and would grow to
     * megabytes. */
    setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &buffer, sizeof buffer);
    setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &buffer, sizeof buffer);
    if (bind(fd, (const struct sockaddr *)&a->at, a->len) != 0 || listen(fd, BACKLOG) != 0 ||
        getsockname(fd, (struct sockaddr *)&a->at, &a->len) != 0) {
        err_sys(e, "cannot listen on %s", text);
        close(fd);
        return -1;
    }
    return fd;
}

static uint16_t port_of(const struct sockaddr *a)
{
    return ntohs(a->sa_family == AF_INET6 ? ((const struct sockaddr_in6 *)a)->sin6_port
                                          : ((const struct sockaddr_in *)a)->sin_port);
}

void listen_peer(const struct sockaddr *a, char buf[LISTEN_TEXT], uint64_t *key)
{
    buf[0] = '\0';
    *key = 0;
    if (a == NULL)
        return;
    if (a->sa_family == AF_INET6)
        inet_ntop(AF_INET6, &((const struct sockaddr_in6 *)a)->sin6_addr, buf, LISTEN_TEXT);
    else if (a->sa_family == AF_INET)
        inet_ntop(AF_INET, &((const struct sockaddr_in *)a)->sin_addr, buf, LISTEN_TEXT);
    *key = keyed_hash(hash_key(), buf, strlen(buf));
}

void listen_text(const struct listen_address *a, char buf[LISTEN_TEXT])
{
    const struct sockaddr *at = (const struct sockaddr *)&a->at;
    char host[LISTEN_TEXT];
    uint64_t ignored;

    listen_peer(at, host, &ignored);
    snprintf(buf, LISTEN_TEXT, at->sa_family == AF_INET6 ? "[%.46s]:%u" : "%.46s:%u", host,
             port_of(at));
}

/* The name that hosts(5) of Debian has for ::1, and those that resolvers must not ask the network
 * for (RFC 6761).  A dot at the end means the same. */
static bool is_local_word(char *name)
{
    static const char local[] = ".localhost";
    size_t n = strlen(name), n_local = sizeof local - 1;

    if (n > 1 && name[n - 1] == '.')
        name[--n] = '\0';
    return strcasecmp(name, local + 1) == 0 || strcasecmp(name, "ip6-localhost") == 0 ||
           strcasecmp(name, "ip6-loopback") == 0 ||
           (n > n_local && strcasecmp(name + n - n_local, local) == 0);
}

bool listen_is_local_name(const char *host)
{
    char name[LISTEN_TEXT];
    struct in_addr four;
    struct in6_addr six;
    size_t n = host[0] == '[' ? strcspn(host, "]") : strcspn(host, ": \t"), end;

    n += host[n] == ']';
    end = n + strspn(host + n, " \t"); /* white space at the end of a header */
    if (n == 0 || n >= sizeof name || (host[n] != ':' && host[end] != '\0'))
        return false;
    memcpy(name, host, n);
    name[n] = '\0';
    if (is_local_word(name))
        return true;
    /* Clients whose address is that of a server which listens everywhere send it as it is. */
    if (inet_pton(AF_INET, name, &four) == 1)
        return is_loopback_4(four) || four.s_addr == htonl(INADDR_ANY);
    if (name[0] != '[' || name[n - 1] != ']')
        return false;
    name[n - 1] = '\0';
    return inet_pton(AF_INET6, name + 1, &six) == 1 &&
           (is_loopback_6(&six) || IN6_IS_ADDR_UNSPECIFIED(&six));
}
