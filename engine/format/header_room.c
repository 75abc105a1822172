#include "config.h"

#include "engine/format/header_room.h"

int header_room_take(struct header_room *room, uint64_t bytes, struct err *e)
{
    if (room == NULL)
        return 0;
    if (room->limit != 0 && (room->used > room->limit || bytes > room->limit - room->used))
        return err_set(e, ERR_BUDGET,
                       "the header needs more than the %llu KiB that the budget leaves for it",
                       (unsigned long long)(room->limit >> 10));
    room->used += bytes;
    return 0;
}

void header_room_give(struct header_room *room, uint64_t bytes)
{
    if (room != NULL)
        room->used -= bytes < room->used ? bytes : room->used;
}
