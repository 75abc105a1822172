/*
 * memwall.h - the public interface of the engine: all of its headers.
 *
 * A program that chats calls mw_model_open(), mw_chat_open() and mw_chat_send().  It polls
 * mw_chat_fd() and takes events with mw_chat_next().  The chat has an engine thread of its own.
 *
 * A program that evaluates token ids itself calls mw_model_open(), mw_session_open(),
 * mw_session_eval() and mw_session_logits().  tests/example/greedy.c is such a program.
 *
 * Errors: functions that return int return 0, or -1 with *e set.  *e must be ERR_INIT before
 * the call.  A function that fails changes nothing unless its comment says so.
 *
 * Ownership: the caller frees an object that a function stores in *out with the function named
 * ..._close or ..._free.  *out is NULL after a failure.  A model must outlive its sessions,
 * chats, samplers, encoders and watchers.
 *
 * Threads: an object is used by one thread at a time.  Functions marked "any thread" may be
 * called while another thread uses the object.
 *
 * Units: sizes are bytes, rates are bytes or operations per second, times are nanoseconds if
 * the name ends in _ns.  Lengths of text are bytes of UTF-8.
 *
 * The engine does not print, exit, install signal handlers or read the environment.
 *
 * A file may include the header of its subject instead.  Headers of api/ declare the functions;
 * the others describe plain data that they take and return, or a separate service.
 */
#ifndef MEMWALL_ENGINE_MEMWALL_H
#define MEMWALL_ENGINE_MEMWALL_H

/* Errors as values, sizes in words. */
#include "engine/base/err.h"
#include "engine/base/units.h"

/* Models: files on this machine, fetched ones, published ones; text and ids. */
#include "engine/api/inspect.h"
#include "engine/api/known.h"
#include "engine/api/model.h"
#include "engine/api/text.h"
#include "engine/hub/models.h"
#include "engine/hub/pull.h"

/* Running a model. */
#include "engine/api/chat.h"
#include "engine/api/kv_files.h"
#include "engine/api/options.h"
#include "engine/api/session.h"

/* Before a run: what it takes, how fast it will be, and why. */
#include "engine/api/diagnose.h"
#include "engine/api/learned.h"
#include "engine/api/measure.h"
#include "engine/api/plan.h"
#include "engine/api/products.h"
#include "engine/api/wall.h"
#include "engine/limits/store.h"

/* A model at a server. */
#include "engine/remote/remote.h"

/* During a run: figures, recordings (memwall-telemetry(5)) and their replay. */
#include "engine/api/watch.h"
#include "engine/telemetry/json.h"
#include "engine/telemetry/lines.h"
#include "engine/telemetry/rates.h"
#include "engine/telemetry/recorder.h"
#include "engine/telemetry/replay.h"

/* This build and this computer. */
#include "engine/api/program.h"
#include "engine/machine/cage.h"
#include "engine/machine/disturb.h"
#include "engine/machine/energy.h"
#include "engine/machine/machine.h"

/* Files: those that are written, and JSON that is read. */
#include "engine/api/output.h"
#include "engine/format/json.h"

/* Grammars and JSON schemas of answers. */
#include "engine/grammar/grammar.h"

#endif
