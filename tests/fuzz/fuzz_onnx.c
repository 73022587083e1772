/* fuzz_onnx.c — the converter: any bytes are refused, or become a file that passes the verifier and runs. */
#include "convert/convert.h"
#include "formats/lnt_file.h"
#include "tests/c/try_model.h"
#include "tests/fuzz/fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    /* What is done takes turns with the size: all of it is tried, and a file always does the same. */
    static const lnt_opt levels[] = {LNT_OPT_ALL, LNT_OPT_NONE, LNT_OPT_BASIC};
    static const int64_t lengths[] = {2, 0, LNT_LENGTH_NONE, 3};
    const lnt_convert_options options = {.opt = levels[size % 3],
                                         .reference_golden = size % 2,
                                         .case_length = lengths,
                                         .n_case_lengths = sizeof lengths / sizeof *lengths};
    lnt_report report;
    lnt_error err = {0};
    void *image = NULL;
    size_t image_size = 0;
    /* The run for golden vectors alone may take 20, and half as many more to be given up. */
    fuzz_begin(30);
    lnt_report_init(&report);
    const lnt_status status =
        lnt_convert_memory(bytes, size, NULL, &options, &report, &image, &image_size, &err);
    if (status == LNT_OK) {
        lnt_file file;
        if (lnt_file_check(image, image_size, true, &file, &err) != LNT_OK)
            fuzz_fail(err.message);
        fuzz_judge(try_model(image, image_size, 0, &err), &err);
        lnt_free(&lnt_malloc_allocator, image);
    } else if (!report.n_unsupported) {
        fuzz_judge(status, &err);
    }
    lnt_report_free(&report);
    return 0;
}
