#include "config.h"

#include "engine/format/foreign_files.h"

#include <fnmatch.h>
#include <string.h>

#define LOOK_FOR "look for GGUF or safetensors files of the model"

static const struct foreign_kind kinds[] = {
    { "model_index.json", "the parts of an image or video model",
      "memwall runs text models only" },
    { "adapter_config.json", "an adapter (LoRA), not a model",
      "use the base model that the adapter's page names, or a merged model" },
    { "adapter_model.*", "an adapter (LoRA), not a model",
      "use the base model that the adapter's page names, or a merged model" },
    { "*lora*.safetensors", "an adapter (LoRA), not a model",
      "use the base model that the adapter's page names, or a merged model" },
    { "*mmproj*.gguf", "a projector of images or sound, not a model",
      "use the language model that it belongs to" },
    { "*imatrix*.gguf", "a matrix of importance, not a model",
      "use a model that was quantised with it" },
    { "*imatrix*.dat", "a matrix of importance, not a model",
      "use a model that was quantised with it" },
    { "*.gguf.part*", "pieces of a GGUF file", "fetch all of them and join them" },
    { "*.gguf-split-*", "pieces of a GGUF file", "fetch all of them and join them" },
    { "*.gguf.[0-9]*", "pieces of a GGUF file", "fetch all of them and join them" },
    { "*.llamafile", "a llamafile, a program with a model in it", LOOK_FOR },
    { "*ggml*.bin", "a GGML file of 2023", "look for GGUF files of the model" },
    { "consolidated*.safetensors", "weights in the vendor's own format", LOOK_FOR },
    { "consolidated*.pth", "weights in the vendor's own format", LOOK_FOR },
    { "*gptq*.safetensors", "weights quantised with GPTQ", "look for GGUF files of the model" },
    { "weights*.npz", "weights for MLX", "look for GGUF files of the model" },
    { "weights*.safetensors", "weights for MLX", "look for GGUF files of the model" },
    { "model-*-of-*.safetensors", "parts of a snapshot without their index",
      "fetch model.safetensors.index.json, too, or look for GGUF files of the model" },
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
    { "config.json", "a configuration without weights", "fetch the weights, too" },
    { "tokenizer.json", "a tokenizer without weights", "fetch the model, too" },
};

const struct foreign_kind *foreign_file_kind(uint32_t i)
{
    return i < sizeof kinds / sizeof kinds[0] ? &kinds[i] : NULL;
}

bool foreign_file_is(const struct foreign_kind *k, const char *name)
{
    const char *slash = strrchr(name, '/');

    return fnmatch(k->pattern, slash != NULL ? slash + 1 : name, FNM_CASEFOLD) == 0;
}

const char *foreign_arch_is(const char *name)
{
    static const struct {
        const char *pattern, *is;
    } archs[] = {
        { "clip", "a vision projector, not a text model" },
        { "*assistant*", "a drafting model, which cannot run alone" },
        { "eagle*", "a drafting model, which cannot run alone" },
        { "dflash*", "a drafting model, which cannot run alone" },
        { "controlvector", "a control vector, not a model" },
        { "*bert*", "an embedding model, which writes no text" },
        { "*-embed*", "an embedding model, which writes no text" },
        { "*_embedding", "an embedding model, which writes no text" },
        { "mpnet", "an embedding model, which writes no text" },
        { "t5encoder", "an embedding model, which writes no text" },
        { "flux*", "an image model" },
        { "sd[123]*", "an image model" },
        { "sdxl*", "an image model" },
        { "aura", "an image model" },
        { "lumina*", "an image model" },
        { "hidream*", "an image model" },
        { "qwen_image", "an image model" },
        { "wan", "a video model" },
        { "ltxv", "a video model" },
        { "hyvid", "a video model" },
        { "cosmos", "a video model" },
        { "whisper*", "a model that writes down speech" },
        { "wavtokenizer*", "a model that makes sound" },
    };

    for (size_t i = 0; i < sizeof archs / sizeof archs[0]; i++)
        if (fnmatch(archs[i].pattern, name, FNM_CASEFOLD) == 0)
            return archs[i].is;
    return NULL;
}
