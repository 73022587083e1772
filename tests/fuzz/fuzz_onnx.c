/* fuzz_onnx.c — the converter: any bytes are refused, or become a file that loads and runs. */
#include "convert/convert.h"
#include "tests/c/try_model.h"
#include "tests/fuzz/fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    const lnt_convert_options options = {.opt = LNT_OPT_ALL};
    lnt_report report;
    lnt_error err = {0};
    void *image = NULL;
    size_t image_size = 0;
    lnt_report_init(&report);
    const lnt_status status =
        lnt_convert_memory(bytes, size, NULL, &options, &report, &image, &image_size, &err);
    if (status == LNT_OK) {
        fuzz_judge(try_model(image, image_size, &err), &err);
        lnt_free(&lnt_malloc_allocator, image);
    } else if (!report.n_unsupported) {
        fuzz_judge(status, &err);
    }
    lnt_report_free(&report);
    return 0;
}
