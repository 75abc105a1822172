/* See processor.h. */
#include "config.h"

#include "engine/compute/processor.h"

#ifdef __x86_64__
#include <sys/syscall.h>

#include <cpuid.h>
#include <stddef.h>
#include <unistd.h>

/* Leaf 7 of cpuid: AMX-TILE and AMX-INT8 */
bool processor_has_amx(void)
{
    unsigned a, b, c, d;

    return __get_cpuid_count(7, 0, &a, &b, &c, &d) != 0 && (d >> 24 & 3) == 3;
}

/* Whether the system enabled registers to be saved at all: leaf 1 of cpuid */
static bool has_xgetbv(void)
{
    unsigned a, b, c, d;

    return __get_cpuid(1, &a, &b, &c, &d) != 0 && (c & bit_OSXSAVE) != 0;
}

/* Bits 17 and 18 of XCR0: the shapes and the values of tiles are saved. */
static bool saves_tiles(void)
{
    unsigned low, high;

    if (!has_xgetbv())
        return false;
    __asm__("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
    return (low >> 17 & 3) == 3;
}

const char *processor_amx_denied(void)
{
    enum { ARCH_REQ_XCOMP_PERM = 0x1023, XFEATURE_XTILEDATA = 18 };

    if (!processor_has_amx())
        return NULL;
    if (!saves_tiles())
        return "amx is not used: the system does not save its registers";
    if (syscall(SYS_arch_prctl, ARCH_REQ_XCOMP_PERM, XFEATURE_XTILEDATA) != 0)
        return "amx is not used: the system refuses permission";
    return NULL;
}

bool processor_is_amd(void)
{
    unsigned a, b, c, d;

    return __get_cpuid(0, &a, &b, &c, &d) != 0 && b == signature_AMD_ebx &&
           c == signature_AMD_ecx && d == signature_AMD_edx;
}
#else
#include <stddef.h>

bool processor_has_amx(void)
{
    return false;
}

const char *processor_amx_denied(void)
{
    return NULL;
}

bool processor_is_amd(void)
{
    return false;
}
#endif
