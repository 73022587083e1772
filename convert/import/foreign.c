/* foreign.c — files of other kinds that are given as ONNX models. */
#include "convert/import/foreign.h"

#include "formats/lnt_format.h"

#include <string.h>

#define SYNTAX                                                                                               \
    "a model in ONNX's own syntax, which onnx.parser reads: "                                                \
    "onnx.save(onnx.load(F, format=\"onnxtxt\"), \"model.onnx\")"
#define JSON "a model as JSON: onnx.save(onnx.load(F, format=\"json\"), \"model.onnx\")"

static const struct {
    size_t at;
    const char *begin, *what;
} kinds[] = {
    {0, "version https://git-lfs", "a Git LFS pointer, not the model: fetch it with `git lfs pull`"},
    {0, LNT_FILE_MAGIC, "converted already (an .lnt): `linnet run`, `verify` and `bench` take it as it is"},
    {0, LNT_BUNDLE_MAGIC, "the end of a bundle, not an ONNX model"},
    {0, "\177ELF", "a program or library, not an ONNX model"},
    {0, "PK\3\4", "a zip archive (PyTorch's .pt is one): export it with torch.onnx.export, or unpack it"},
    {0, "\x1f\x8b", "compressed by gzip: unpack it first"},
    {0, "\3757zXZ", "compressed by xz: unpack it first"},
    {0, "BZh", "compressed by bzip2: unpack it first"},
    {0, "\x28\xb5\x2f\xfd", "compressed by zstd: unpack it first"},
    {0, "\x89HDF", "HDF5 (Keras): export it with tf2onnx"},
    {0, "\x80\x02", "a Python pickle (PyTorch): export it with torch.onnx.export"},
    {4, "TFL3", "a TensorFlow Lite model: export it with tf2onnx --tflite"},
    {4, "ORTM", "onnxruntime's own .ort format: convert the .onnx it was made from"},
    {0, "7767517", "ncnn's .param: convert the .onnx it was made from"},
    {0, "<!DOCTYPE", "a web page, not the model: the download went wrong"},
    {0, "<!doctype", "a web page, not the model: the download went wrong"},
    {0, "<html", "a web page, not the model: the download went wrong"},
    {0, "<\n   ir_version:", SYNTAX},
    {0, "<ir_version:", SYNTAX},
    {0, "{\n  \"ir_version\"", JSON},
    {0, "{\"ir_version\"", JSON},
};

const char *lnt_foreign_file(const void *bytes, size_t size)
{
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        const size_t length = strlen(kinds[i].begin);
        if (size >= kinds[i].at + length &&
            memcmp((const char *)bytes + kinds[i].at, kinds[i].begin, length) == 0)
            return kinds[i].what;
    }
    return NULL;
}
