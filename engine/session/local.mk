# engine/session: the interface of chat, run and eval: evaluate, sample, rewind, converse.
libengine_a_SOURCES += \
	engine/session/model.c engine/session/model.h engine/session/known_model.c \
	engine/session/model_head.c engine/session/model_head.h \
	engine/session/model_mirror.c engine/session/model_mirror.h \
	engine/session/session_head.c engine/session/session_head.h \
	engine/session/head_drafter.c \
	engine/session/options.c engine/session/resolve.c engine/session/options.h \
	engine/session/plan_input.c engine/session/plan_input.h \
	engine/session/anchors.c engine/session/anchors.h \
	engine/session/breathing.c engine/session/breathing.h engine/session/session_breath.c \
	engine/session/favourites.c engine/session/favourites.h \
	engine/session/tried.c engine/session/tried.h \
	engine/session/diagnose.c engine/session/diagnosis_text.c \
	engine/session/model_limits.c engine/session/model_limits.h engine/session/limits_text.c \
	engine/session/doctor.c \
	engine/session/packing.c engine/session/packing.h \
	engine/session/product_choice.c engine/session/product_choice.h \
	engine/session/session.c engine/session/session.h engine/session/session_internal.h \
	engine/session/session_parts.c engine/session/session_memory.c \
	engine/session/session_change.c engine/session/session_publish.c \
	engine/session/session_draft.c \
	engine/session/draft_model.c engine/session/draft_model.h engine/session/model_drafter.c \
	engine/session/self_drafter.c \
	engine/session/no_drafter.c \
	engine/session/settled.c engine/session/settled.h \
	engine/session/tokens.c engine/session/tokens.h \
	engine/session/copies.c engine/session/copies.h \
	engine/session/saved_kv.c engine/session/saved_kv.h engine/session/kv_files.c \
	engine/session/saved_kv_internal.h \
	engine/session/saved_beginning.c engine/session/saved_beginning.h \
	engine/session/beginnings.c engine/session/beginnings.h \
	engine/session/sampler.c engine/session/sampler.h \
	engine/session/constraint.c engine/session/constraint.h \
	engine/session/logprobs.c engine/session/logprobs.h \
	engine/session/conversation.c engine/session/conversation.h \
	engine/session/answer.c engine/session/answer.h engine/session/answer_internal.h \
	engine/session/answer_prompt.c engine/session/answer_resume.c \
	engine/session/answer_text.c engine/session/answer_end.c \
	engine/session/answer_beginning.c \
	engine/session/events.c engine/session/events.h \
	engine/session/settings.c engine/session/settings.h \
	engine/session/chat.c engine/session/chat_internal.h \
	engine/session/chat_queue.c engine/session/chat_thread.c \
	engine/session/chat_options.c engine/session/chat_cost.c \
	engine/session/chat_kv.c \
	engine/session/cost_basis.c \
	engine/session/prompt_cost.c engine/session/prompt_cost.h \
	engine/session/vocab.c engine/session/vocab.h \
	engine/session/vocab_chat.c \
	engine/session/inspect.c engine/session/output.c engine/session/model_files.c \
	engine/session/wall.c \
	engine/session/watch.c engine/session/version.c
