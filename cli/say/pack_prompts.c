/* pack_prompts.c — a list of prompts becomes a pack. */
#include "cli/say/pack_prompts.h"

#include "cli/data/model.h"
#include "cli/shell/json.h"

static void warn(const lnt_prompt *prompt, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (prompt[i].missing)
            fprintf(stderr,
                    "linnet say: warning: prompt %s: symbols that are not the voice's, and left out: %zu\n",
                    prompt[i].name, prompt[i].missing);
}

static void report(const lnt_packing *what, size_t n, size_t bytes)
{
    lnt_json j = {.out = stdout};
    if (!what->json) {
        printf("%s\n", what->file);
        return;
    }
    lnt_json_begin(&j, NULL, '{');
    lnt_json_text(&j, "file", what->file);
    lnt_json_int(&j, "prompts", (int64_t)n);
    lnt_json_int(&j, "bytes", (int64_t)bytes);
    lnt_json_end(&j, '}');
}

static lnt_status pack(const lnt_packing *what, lnt_voice *voice, const lnt_say_options *how,
                       lnt_bump *memory, lnt_error *err)
{
    char *text;
    lnt_prompt *prompt;
    size_t n, bytes;
    void *image;
    LNT_TRY(lnt_read_text(what->list, &text, err));
    LNT_TRY(lnt_prompt_list_read(what->list, text, memory, &prompt, &n, err));
    LNT_REQUIRE(n, err, LNT_E_VALUE, "%s has no prompts: name|text, a line each", what->list);
    LNT_TRY(lnt_pack_build(voice, prompt, n, how, what->kind, &image, &bytes, err));
    const lnt_status status = lnt_write_atomic(what->file, image, bytes, err);
    lnt_free(&lnt_malloc_allocator, image);
    LNT_TRY(status);
    if (!what->quiet)
        warn(prompt, n);
    report(what, n, bytes);
    return LNT_OK;
}

lnt_status lnt_pack_prompts(const lnt_packing *what, lnt_voice *voice, const lnt_say_options *how,
                            lnt_error *err)
{
    lnt_bump memory;
    lnt_bump_init(&memory, &lnt_malloc_allocator);
    const lnt_status status = pack(what, voice, how, &memory, err);
    lnt_bump_free(&memory);
    return status;
}
