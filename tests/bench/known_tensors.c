/*
 * known_tensors - the tensors of the file that converters write of a published model.
 *
 *     known_tensors known-models.json NAME LABEL
 *
 * Prints the architecture, and then a line for each tensor: its name, the number of its type, and
 * its dimensions, row length first.
 */
#include "config.h"

#include <stdio.h>
#include <string.h>

#include "engine/format/arch.h"
#include "engine/format/known.h"
#include "tests/bench/turns.h"

static void print(const struct catalogue *c)
{
    printf("%s\n", c->hparams.arch->name);
    for (uint32_t i = 0; i < c->n_tensor; i++) {
        const struct tensor_info *t = &c->tensors[i];

        printf("%s %d", t->name, (int)t->type);
        for (uint32_t d = 0; d < t->n_dims; d++)
            printf(" %llu", (unsigned long long)t->ne[d]);
        printf("\n");
    }
}

int main(int argc, char **argv)
{
    struct header_room room = { 0 };
    struct err e = ERR_INIT;
    struct catalogue *c;
    struct mw_known *list;

    if (argc != 4) {
        fprintf(stderr, "usage: known_tensors known-models.json NAME LABEL\n");
        return 2;
    }
    if (known_open(&list, argv[1], &e) != 0)
        return bench_fail("known_tensors", &e);
    for (uint32_t i = 0; i < list->n; i++) {
        if (strcmp(list->model[i].name, argv[2]) != 0)
            continue;
        if (known_catalogue(&c, &list->model[i], argv[3], &room, &e) != 0)
            return bench_fail("known_tensors", &e);
        print(c);
        catalogue_close(c);
        known_close(list);
        return 0;
    }
    fprintf(stderr, "known_tensors: %s has no model %s\n", argv[1], argv[2]);
    return 1;
}
