/*
 * local.h - the engine in this process.
 */
#ifndef MEMWALL_UI_ENGINE_LOCAL_H
#define MEMWALL_UI_ENGINE_LOCAL_H

#include "ui/engine/engine.h"

/* close() waits for a disk that does not answer for half a second at most; then the engine's
 * thread keeps the model. */
extern const struct engine_calls engine_local;

#endif
