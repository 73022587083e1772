/* texts.c — the texts that are to be spoken. */
#include "cli/say/texts.h"

#include "base/file.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char blanks[] = " \t\r\n\v\f";

/* All words, as one text. */
static const char *joined(const lnt_texts *words)
{
    const char *text = words->item[0];
    for (size_t i = 1; i < words->n; i++)
        text = lnt_cli_text("%s %s", text, words->item[i]);
    return text;
}

/* What is given on the command line, in this order: phonemes, ids, words. */
static bool next_argument(lnt_text_source *s, lnt_spoken *to)
{
    const size_t k = s->at++, ids = s->phonemes->n, words = ids + s->ids->n;
    to->form = k < ids ? LNT_VOICE_PHONEMES : k < words ? LNT_VOICE_IDS : LNT_VOICE_TEXT;
    if (k < words)
        to->text = k < ids ? s->phonemes->item[k] : s->ids->item[k - ids];
    else if (k == words && s->words->n)
        to->text = joined(s->words);
    return to->text != NULL;
}

/* The next name among the words, and the values behind it. */
static lnt_status next_prompt(lnt_text_source *s, lnt_spoken *to, lnt_error *err)
{
    const lnt_texts *words = s->words;
    lnt_slot_value *value = lnt_cli_alloc((words->n + 1) * sizeof *value);
    to->value = value;
    if (s->at == words->n)
        return LNT_OK;
    to->prompt = true;
    to->text = words->item[s->at++];
    LNT_REQUIRE(!strchr(to->text, '='), err, LNT_E_ARGUMENT, "%s: values stand behind their prompt's name",
                to->text);
    for (; s->at < words->n && strchr(words->item[s->at], '='); s->at++) {
        const char *equals = strchr(words->item[s->at], '=');
        value[to->n_values++] = (lnt_slot_value){
            lnt_cli_text("%.*s", (int)(equals - words->item[s->at]), words->item[s->at]), equals + 1};
    }
    return LNT_OK;
}

/* Opens the next file if none is open; *more false: there are no more. */
static lnt_status open_next(lnt_text_source *s, bool *more, lnt_error *err)
{
    int fd;
    size_t size;
    *more = true;
    if (s->in)
        return LNT_OK;
    s->line_number = 0;
    *more = s->at < (s->files->n ? s->files->n : 1);
    if (!*more)
        return LNT_OK;
    s->name = s->files->n ? s->files->item[s->at] : "standard input";
    s->at++;
    if (!s->files->n) {
        s->in = stdin;
        return LNT_OK;
    }
    LNT_TRY(lnt_open_regular(s->name, 0, &fd, &size, err));
    s->in = fdopen(fd, "r");
    if (!s->in)
        close(fd);
    LNT_REQUIRE(s->in, err, LNT_E_MEMORY, "no memory for %s", s->name);
    return LNT_OK;
}

static void close_file(lnt_text_source *s)
{
    if (s->in && s->in != stdin)
        fclose(s->in);
    s->in = NULL;
}

/* The next line that is not blank, without blanks around it. */
static lnt_status next_line(lnt_text_source *s, const char **line, lnt_error *err)
{
    *line = NULL;
    for (;;) {
        bool more;
        LNT_TRY(open_next(s, &more, err));
        if (!more)
            return LNT_OK;
        errno = 0;
        const ssize_t n = getline(&s->line, &s->line_room, s->in);
        LNT_REQUIRE(n >= 0 || !ferror(s->in), err, LNT_E_IO, "cannot read %s: %s", s->name, strerror(errno));
        if (n < 0) {
            close_file(s);
            continue;
        }
        s->line_number++;
        LNT_REQUIRE(strlen(s->line) == (size_t)n, err, LNT_E_VALUE,
                    "%s: line %zu is no text: there is a NUL in it", s->name, s->line_number);
        const char *begin = s->line + strspn(s->line, blanks);
        for (char *end = s->line + n; end > begin && strchr(blanks, end[-1]); end--)
            end[-1] = '\0';
        if (*begin) {
            *line = begin;
            return LNT_OK;
        }
    }
}

static lnt_status member_text(const lnt_json_value *line, const char *name, const char **text, lnt_error *err)
{
    const lnt_json_value *v = lnt_json_member(line, name);
    LNT_REQUIRE(!v || v->kind == LNT_JSON_TEXT, err, LNT_E_VALUE, "%s is no text", name);
    *text = v ? v->text : NULL;
    return LNT_OK;
}

lnt_status lnt_take_queue(const lnt_json_value *object, lnt_queue_kind *to, lnt_error *err)
{
    static const char *const kinds[] = {"add", "flush", "interrupt"};
    const char *text = NULL;
    LNT_TRY(member_text(object, "queue", &text, err));
    if (!text)
        return LNT_OK;
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (strcmp(text, kinds[i]) == 0) {
            *to = (lnt_queue_kind)i;
            return LNT_OK;
        }
    return lnt_fail(err, LNT_E_VALUE, "queue is add, flush or interrupt, not %.40s", text);
}

lnt_status lnt_take_values(const lnt_json_value *object, lnt_bump *memory, const lnt_slot_value **value,
                           size_t *n, lnt_error *err)
{
    enum { NUMBER_ROOM = 32 };
    size_t most = 0;
    LNT_REQUIRE(!object || object->kind == LNT_JSON_OBJECT, err, LNT_E_VALUE, "values is no object");
    for (const lnt_json_value *v = object ? object->first : NULL; v; v = v->next)
        most++;
    lnt_slot_value *to = lnt_bump_alloc(memory, most * sizeof *to, err);
    *value = to;
    *n = 0;
    if (!to)
        return LNT_E_MEMORY;
    for (const lnt_json_value *v = object ? object->first : NULL; v; v = v->next) {
        char number[NUMBER_ROOM];
        LNT_REQUIRE(v->kind == LNT_JSON_TEXT || v->kind == LNT_JSON_NUMBER, err, LNT_E_VALUE,
                    "the value of %s is no text and no number", v->key);
        snprintf(number, sizeof number, "%.15g", v->number);
        const char *text =
            v->kind == LNT_JSON_TEXT ? v->text : lnt_bump_string(memory, number, strlen(number), err);
        if (!text)
            return LNT_E_MEMORY;
        to[(*n)++] = (lnt_slot_value){v->key, text};
    }
    return LNT_OK;
}

/* {"prompt": name, "values": {…}} */
static lnt_status parse_prompt(lnt_text_source *s, const lnt_json_value *line, lnt_spoken *to, lnt_error *err)
{
    const char *name = NULL;
    LNT_TRY(member_text(line, "prompt", &name, err));
    if (!name || !s->prompts)
        return LNT_OK;
    LNT_REQUIRE(!to->text, err, LNT_E_VALUE, "a line has \"text\" or \"prompt\"");
    to->prompt = true;
    to->text = name;
    return lnt_take_values(lnt_json_member(line, "values"), &s->memory, &to->value, &to->n_values, err);
}

static lnt_status parse_json(lnt_text_source *s, const char *line, lnt_spoken *to, lnt_error *err)
{
    const lnt_json_value *v;
    lnt_bump_free(&s->memory);
    lnt_bump_init(&s->memory, &lnt_malloc_allocator);
    LNT_TRY(lnt_json_read(line, strlen(line), &s->memory, &v, err));
    const lnt_json_value *id = lnt_json_member(v, "speaker_id");
    LNT_TRY(member_text(v, "text", &to->text, err));
    LNT_TRY(member_text(v, "output_file", &to->file, err));
    LNT_TRY(member_text(v, "speaker", &to->speaker, err));
    LNT_TRY(lnt_take_queue(v, &to->queue, err));
    LNT_TRY(parse_prompt(s, v, to, err));
    LNT_REQUIRE(to->text, err, LNT_E_VALUE, "a line of --json-input is an object with \"text\"%s",
                s->prompts ? " or \"prompt\"" : "");
    LNT_REQUIRE(!id || (id->kind == LNT_JSON_NUMBER && id->number >= 0 && id->number < 1e6), err, LNT_E_VALUE,
                "speaker_id is no speaker's number");
    if (id)
        to->speaker_id = (int64_t)id->number;
    return LNT_OK;
}

lnt_status lnt_text_next(lnt_text_source *s, lnt_spoken *to, bool *found, lnt_error *err)
{
    const char *line;
    *to = (lnt_spoken){.speaker_id = -1, .queue = s->queue};
    if (s->prompts && !s->json) {
        LNT_TRY(next_prompt(s, to, err));
        *found = to->text != NULL;
        return LNT_OK;
    }
    if (s->words->n || s->phonemes->n || s->ids->n) {
        *found = next_argument(s, to);
        return LNT_OK;
    }
    LNT_TRY(next_line(s, &line, err));
    *found = line != NULL;
    if (!line)
        return LNT_OK;
    to->text = line;
    const lnt_status status = s->json ? parse_json(s, line, to, err) : LNT_OK;
    if (status != LNT_OK)
        lnt_error_prefix(err, "%s, line %zu: ", s->name, s->line_number);
    return status;
}

lnt_status lnt_find_speaker(const lnt_voice *voice, const char *name, int64_t *id, lnt_error *err)
{
    const char *found;
    for (uint32_t k = 0; lnt_voice_speaker(voice, k, &found, id) == LNT_OK; k++)
        if (strcmp(found, name) == 0)
            return LNT_OK;
    return lnt_fail(err, LNT_E_NOT_FOUND, "the voice has no speaker called %s", name);
}

lnt_status lnt_take_speaker(const lnt_voice *voice, const char *text, int64_t *id, lnt_error *err)
{
    char *end;
    *id = strtoll(text, &end, 10);
    return *text && !*end && *id >= 0 ? LNT_OK : lnt_find_speaker(voice, text, id, err);
}

void lnt_text_close(lnt_text_source *s)
{
    close_file(s);
    lnt_bump_free(&s->memory);
    free(s->line);
    s->line = NULL;
}
