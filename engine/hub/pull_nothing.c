#include "config.h"

#include "engine/hub/pull_nothing.h"

#include <fnmatch.h>
#include <string.h>

#define LOOK_FOR "look for a repository with GGUF or safetensors files of it"

/*
 * A repository is what the first row says of which it has a file.  A pattern is that of a file's
 * name without its folders; upper and lower case are the same.
 */
static const struct kind {
    const char *pattern, *is, *hint;
} kinds[] = {
    { "model_index.json", "the parts of an image or video model", "memwall runs text models only" },
    { "adapter_config.json", "an adapter (LoRA), not a model",
      "fetch the base model that the adapter's page names, or a merged model" },
    { "adapter_model.*", "an adapter (LoRA), not a model",
      "fetch the base model that the adapter's page names, or a merged model" },
    { "*lora*.safetensors", "an adapter (LoRA), not a model",
      "fetch the base model that the adapter's page names, or a merged model" },
    { "*mmproj*.gguf", "a projector of images or sound, not a model",
      "fetch the repository of the language model that it belongs to" },
    { "*imatrix*.gguf", "a matrix of importance, not a model",
      "fetch a model that was quantised with it" },
    { "*imatrix*.dat", "a matrix of importance, not a model",
      "fetch a model that was quantised with it" },
    { "*.gguf.part*", "pieces of a GGUF file", "download them with another program and join them" },
    { "*.gguf-split-*", "pieces of a GGUF file",
      "download them with another program and join them" },
    { "*.llamafile", "a llamafile, a program with a model in it", LOOK_FOR },
    { "*ggml*.bin", "a GGML file of 2023", "look for GGUF files of the model" },
    { "consolidated*.safetensors", "weights in the vendor's own format", LOOK_FOR },
    { "consolidated*.pth", "weights in the vendor's own format", LOOK_FOR },
    { "*gptq*.safetensors", "weights quantised with GPTQ", "look for GGUF files of the model" },
    { "weights*.npz", "weights for MLX", "look for GGUF files of the model" },
    { "weights*.safetensors", "weights for MLX", "look for GGUF files of the model" },
    { "*.safetensors", "safetensors files without the names of a snapshot (model.safetensors)",
      "look for GGUF files of the model" },
    { "pytorch_model*.bin", "PyTorch pickles", LOOK_FOR },
    { "*.pth", "PyTorch pickles", LOOK_FOR },
    { "*.pt", "PyTorch pickles", LOOK_FOR },
    { "*.ckpt", "PyTorch pickles", LOOK_FOR },
    { "*.onnx", "an ONNX model", LOOK_FOR },
    { "*.onnx_data", "an ONNX model", LOOK_FOR },
    { "openvino_model.*", "an OpenVINO model", LOOK_FOR },
    { "*.h5", "a TensorFlow model", LOOK_FOR },
    { "*.msgpack", "a Flax model", LOOK_FOR },
    { "*.tflite", "a LiteRT model", LOOK_FOR },
    { "*.task", "a LiteRT model", LOOK_FOR },
    { "*.litertlm", "a LiteRT model", LOOK_FOR },
    { "*.mlmodel", "a Core ML model", LOOK_FOR },
    { "coremldata.bin", "a Core ML model", LOOK_FOR },
    { "*.nemo", "a NeMo model", LOOK_FOR },
    { "*.engine", "a TensorRT engine", LOOK_FOR },
    { "*.parquet", "data, not a model", "check the name" },
    { "*.arrow", "data, not a model", "check the name" },
    { "*.jsonl", "data, not a model", "check the name" },
    { "*.csv", "data, not a model", "check the name" },
    { "config.json", "a configuration without weights", "try another --revision" },
    { "tokenizer.json", "a tokenizer without weights", "try another --revision" },
};

/* Files that every repository may have. */
static const char *const papers[] = { "README*", "LICENSE*", "NOTICE*", "USE_POLICY*", "*.md",
                                      "*.png",   "*.jpg",    "*.svg" };

static bool is_like(const char *name, const char *pattern)
{
    const char *slash = strrchr(name, '/');

    return fnmatch(pattern, slash != NULL ? slash + 1 : name, FNM_CASEFOLD) == 0;
}

static bool is_paper(const char *name)
{
    for (size_t i = 0; i < sizeof papers / sizeof papers[0]; i++)
        if (is_like(name, papers[i]))
            return true;
    return false;
}

/* Returns the first row that a file of the list matches, or NULL. */
static const struct kind *kind_of(const struct pull_list *l, const char **file)
{
    for (size_t k = 0; k < sizeof kinds / sizeof kinds[0]; k++)
        for (uint32_t i = 0; i < l->n; i++)
            if (is_like(l->files[i].name, kinds[k].pattern)) {
                *file = l->files[i].name;
                return &kinds[k];
            }
    return NULL;
}

int pull_nothing(const char *name, const struct pull_list *l, const struct pull_choices *c,
                 struct err *e)
{
    const char *file = "";
    const struct kind *kind = kind_of(l, &file);
    uint32_t n_other = l->n_unsafe;

    if (c->n_broken > 0)
        return err_set(e, ERR_UNSUPPORTED,
                       "%.80s has no complete model: %.140s; try another --revision", name,
                       c->broken[0]);
    if (c->doubt.code != ERR_NONE) {
        *e = c->doubt;
        return -1;
    }
    if (kind != NULL)
        return err_set(e, ERR_UNSUPPORTED, "%.80s holds %s (%.60s); %s", name, kind->is, file,
                       kind->hint);
    for (uint32_t i = 0; i < l->n; i++)
        n_other += !is_paper(l->files[i].name);
    if (n_other == 0)
        return err_set(e, ERR_UNSUPPORTED,
                       "%.100s has no files of a model; check the name, or try another "
                       "--revision",
                       name);
    return err_set(e, ERR_UNSUPPORTED,
                   "%.100s has neither a complete GGUF model nor a complete safetensors "
                   "snapshot; " LOOK_FOR,
                   name);
}
