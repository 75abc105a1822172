# engine/format: bytes of model files become one catalogue.
EXTRA_DIST += engine/format/README.md
libengine_a_SOURCES += \
	engine/format/arch.c engine/format/arch.h \
	engine/format/mixture.c engine/format/mixture.h \
	engine/format/catalogue.c engine/format/catalogue.h \
	engine/format/catalogue_build.h \
	engine/format/config_attention.c engine/format/config_state.c \
	engine/format/config_fields.c \
	engine/format/config_layers.c engine/format/config_layers.h engine/format/config_routed.c \
	engine/format/config_lookup.c engine/format/config_lookup.h \
	engine/format/config_rope.c engine/format/config_rope.h \
	engine/format/defaults.c engine/format/defaults.h \
	engine/format/draft_head.c engine/format/draft_head.h \
	engine/format/file_open.c engine/format/file_open.h \
	engine/format/foreign_files.c engine/format/foreign_files.h \
	engine/format/foreign_gguf.c engine/format/foreign_piece.c \
	engine/format/gguf.c engine/format/gguf.h \
	engine/format/gguf_keys.c \
	engine/format/gguf_unknown.c \
	engine/format/gguf_lookup.c engine/format/gguf_lookup.h \
	engine/format/gguf_value.c \
	engine/format/header_room.c engine/format/header_room.h \
	engine/format/hparams.h \
	engine/format/hparams_config.c \
	engine/format/hparams_fill.c engine/format/hparams_fill.h \
	engine/format/hparams_gguf.c engine/format/gguf_hparams.h \
	engine/format/gguf_experts.c engine/format/gguf_layers.c \
	engine/format/gguf_recurrent.c engine/format/gguf_rope.c \
	engine/format/join_scales.c \
	engine/format/join_tensors.c engine/format/join_tensors.h \
	engine/format/json.h engine/format/json_copy.c engine/format/json_stream.c engine/format/json_tree.c \
	engine/format/known.c engine/format/known.h engine/format/known_types.c \
	engine/format/names.c engine/format/names.h \
	engine/format/ngram_numbers.c engine/format/ngram_numbers.h \
	engine/format/open_gguf.c \
	engine/format/open_snapshot.c \
	engine/format/reader.c engine/format/reader.h \
	engine/format/safetensors.c engine/format/safetensors.h \
	engine/format/snapshot.h engine/format/snapshot_names.c \
	engine/format/snapshot_index.c engine/format/snapshot_index.h \
	engine/format/summary.c engine/format/summary.h \
	engine/format/summary_foreign.c \
	engine/format/split_name.c engine/format/split_name.h \
	engine/format/tensor_check.c \
	engine/format/tensor_table.c engine/format/tensor_table.h \
	engine/format/tensor_use.c engine/format/tensor_use.h \
	engine/format/tensor_type.c engine/format/tensor_type.h engine/format/type_table.h \
	engine/format/value_rules.c engine/format/value_rules.h \
	engine/format/vocab.h

libengine_a_SOURCES += \
	engine/format/vocab.c \
	engine/format/vocab_added.c engine/format/vocab_added.h \
	engine/format/vocab_config.c \
	engine/format/vocab_gguf.c \
	engine/format/vocab_json.c engine/format/vocab_json.h \
	engine/format/vocab_json_steps.c \
	engine/format/vocab_json_tokens.c \
	engine/format/vocab_pre.c \
	engine/format/vocab_rules.c engine/format/vocab_rules.h
