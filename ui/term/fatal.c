#include "config.h"

#include "ui/term/fatal.h"

#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "engine/memwall.h"

/* The handlers of sanitizers report more. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SANITIZED true
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define SANITIZED true
#endif
#endif
#ifndef SANITIZED
#define SANITIZED false
#endif

/* The last ones are blocked while there is a screen. */
static const int deadly[] = { SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT,
                              SIGINT,  SIGTERM, SIGHUP };
#define N_DEADLY (sizeof deadly / sizeof deadly[0])
#define N_CRASH  5 /* of them */

static struct {
    int fd;
    struct termios modes;
    char bytes[512];
    size_t n;
    char line[512];
    size_t line_n;
    struct sigaction before[N_DEADLY];
    bool is_armed;
} state;

static char stack[32768];

static void restore(int sig, siginfo_t *info, void *context)
{
    ssize_t ignored;

    (void)context;
    if (sig == SIGBUS && info->si_code == BUS_ADRERR && mw_mapping_repair(info->si_addr))
        return;
    ignored = write(state.fd, state.bytes, state.n);
    if (tcgetpgrp(state.fd) == getpgrp()) { /* or it would stop the program */
        (void)tcflush(state.fd, TCIFLUSH);  /* what was typed is not for the shell */
        (void)tcsetattr(state.fd, TCSANOW, &state.modes);
    }
    ignored = write(state.fd, state.line, state.line_n);
    (void)ignored;
    signal(sig, SIG_DFL); /* with a core file */
    raise(sig);
}

void fatal_arm(int fd, const struct termios *modes, const char *bytes, size_t n,
               const char *line)
{
    struct sigaction action = { .sa_sigaction = restore,
                                .sa_flags = SA_SIGINFO | SA_NODEFER | SA_ONSTACK };
    stack_t alternate = { .ss_sp = stack, .ss_size = sizeof stack };

    fatal_disarm();
    state.fd = fd;
    state.modes = *modes;
    state.n = n < sizeof state.bytes ? n : sizeof state.bytes;
    memcpy(state.bytes, bytes, state.n);
    snprintf(state.line, sizeof state.line, "%s%s", line, *line != '\0' ? "\n" : "");
    state.line_n = strlen(state.line);
    sigemptyset(&action.sa_mask);
    if (!SANITIZED)
        sigaltstack(&alternate, NULL);
    for (size_t i = 0; i < N_DEADLY; i++) {
        sigaction(deadly[i], NULL, &state.before[i]);
        if (i < N_CRASH ? !SANITIZED : state.before[i].sa_handler != SIG_IGN)
            sigaction(deadly[i], &action, NULL);
    }
    state.is_armed = true;
}

void fatal_disarm(void)
{
    stack_t none = { .ss_flags = SS_DISABLE };

    if (!state.is_armed)
        return;
    for (size_t i = 0; i < N_DEADLY; i++)
        sigaction(deadly[i], &state.before[i], NULL);
    if (!SANITIZED)
        sigaltstack(&none, NULL);
    state.is_armed = false;
}
