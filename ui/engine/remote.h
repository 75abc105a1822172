/*
 * remote.h - a model at a server that speaks OpenAI's protocol.
 */
#ifndef MEMWALL_UI_ENGINE_REMOTE_H
#define MEMWALL_UI_ENGINE_REMOTE_H

#include "ui/engine/engine.h"

/* open() takes struct engine_model with a server; its path is the name of a model there, or ""
 * for the first one. */
extern const struct engine_calls engine_remote;

#endif
