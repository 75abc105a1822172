/*
 * fake_engine.h - engines without a model: rows of the table in ui/engine/engine.h.
 *
 * The message determines the answer:
 *
 *     say TEXT      TEXT, word by word
 *     lines N       N numbered lines
 *     endless       words until the answer is stopped
 *     [/compact]    anywhere: "In short: one.", or endless if the first message is "say ten"
 *     until FILE    words until FILE exists
 *     full          the context is full after some words; "full until FILE": when FILE exists
 *     losing        with drafts: the model that makes them is closed at the end
 *     trying        with drafts: that model is opened again at the beginning
 *     slow          a prompt that takes many steps of progress
 *     wide          Chinese, emoji, marks
 *     evil          control sequences
 *     anything else "You said: …"
 *
 * The path of the model determines its name, and "missing", "huge" or "until:FILE" in it how it
 * is opened.  Memory, layers and times in the samples are made up, and the same every time.
 */
#ifndef MEMWALL_TESTS_FAKE_ENGINE_H
#define MEMWALL_TESTS_FAKE_ENGINE_H

#include "engine/base/units.h"
#include "ui/engine/engine.h"

extern const struct engine_calls fake_engine;

/* A change to this budget does not end: the sample has it, and no event follows. */
#define FAKE_LONG_CHANGE (777 * MIB)
/* The same chat with an engine of which nothing else can be known: the second part of the table
 * is NULL. */
extern const struct engine_calls fake_bare_engine;

/* The number of bytes whose tokens were counted so far. */
extern uint64_t fake_engine_counted;
/* The time of a token in microseconds. */
extern uint32_t fake_engine_token_us;
/* Rate of the disk from which plans predict, in bytes per nanosecond. */
extern double fake_engine_disk;

#endif
