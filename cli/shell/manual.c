/* manual.c — manual pages from the verbs' tables of options. */
#include "cli/shell/manual.h"

#include "base/cpu.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

/* How a character is written that man would take for something else; NULL: as it is. */
static const char *escape_of(char c, bool line_begins)
{
    switch (c) {
    case '\\': return "\\e";
    case '-': return "\\-";
    case '\'': return "\\(aq";
    case '^': return "\\(ha";
    case '~': return "\\(ti";
    case '.': return line_begins ? "\\&." : NULL;
    default: return NULL;
    }
}

/* Text of which man takes nothing for its own; what stands between two backquotes is bold. */
static void put(const char *text, size_t length)
{
    bool bold = false;
    for (size_t i = 0; i < length; i++) {
        const char *escape = escape_of(text[i], i == 0 || text[i - 1] == '\n');
        if (escape)
            fputs(escape, stdout);
        else if (text[i] == '`')
            fputs((bold = !bold) ? "\\fB" : "\\fR", stdout);
        else
            putchar(text[i]);
    }
}

static void put_font(char font, const char *text, size_t length)
{
    printf("\\f%c", font);
    put(text, length);
    fputs("\\fR", stdout);
}

static void put_line(const char *text)
{
    put(text, strlen(text));
    putchar('\n');
}

static void begin_page(const lnt_cli *program, const char *verb, const char *summary)
{
    printf(".TH LINNET%s", *verb ? "\\-" : "");
    for (const char *c = verb; *c; c++)
        putchar(toupper((unsigned char)*c));
    printf(" 1 \"\" \"Linnet %s\" \"User Commands\"\n.SH NAME\nlinnet%s%s \\- ", program->version,
           *verb ? "\\-" : "", verb);
    put_line(summary);
}

static void put_option(const lnt_option *o)
{
    fputs(".TP\n", stdout);
    for (const char *name = o->name; *name;) {
        const size_t n = strcspn(name, ","), between = strspn(name + n, ", ");
        put_font('B', name, n);
        printf("%.*s", (int)between, name + n);
        name += n + between;
    }
    if (o->value) {
        putchar(' ');
        put_font('I', o->value, strlen(o->value));
    }
    putchar('\n');
    put_line(o->help);
}

static void put_examples(const char *examples)
{
    puts(".SH EXAMPLES\n.nf");
    put(examples, strlen(examples));
    puts(".fi");
}

static void put_exit_status(void)
{
    puts(".SH EXIT STATUS");
    for (int i = LNT_EXIT_OK; i <= LNT_EXIT_RESOURCE; i++)
        printf(".TP\n\\fB%d\\fR\n%s\n", i, lnt_exit_text(i));
}

/* The other pages, all but verb's. */
static void put_see_also(const lnt_cli *program, const lnt_verb *verb)
{
    puts(".SH SEE ALSO");
    if (verb)
        fputs("\\fBlinnet\\fR(1)", stdout);
    for (size_t i = 0, n = verb != NULL; i < program->n_verbs; i++)
        if (program->verb[i] != verb)
            printf("%s\\fBlinnet\\-%s\\fR(1)", n++ ? ",\n" : "", program->verb[i]->name);
    putchar('\n');
}

static void put_verb_page(const lnt_cli *program, const lnt_verb *verb)
{
    begin_page(program, verb->name, verb->summary);
    printf(".SH SYNOPSIS\n\\fBlinnet %s\\fR ", verb->name);
    put_line(verb->usage);
    puts(".SH DESCRIPTION");
    put_line(verb->text);
    puts(".SH OPTIONS");
    for (size_t i = 0; i < verb->n_options; i++)
        put_option(&verb->options[i]);
    put_option(&lnt_help_option);
    put_exit_status();
    put_examples(verb->examples);
}

static void put_program_page(const lnt_cli *program)
{
    begin_page(program, "", program->summary);
    puts(".SH SYNOPSIS\n\\fBlinnet\\fR \\fIverb\\fR [options]\n.SH DESCRIPTION\n"
         "Each verb has a page of its own, and `\\fBlinnet\\fR \\fIverb\\fR \\fB\\-\\-help\\fR' a shorter "
         "one.");
    for (size_t i = 0; i < program->n_verbs; i++) {
        printf(".TP\n\\fB%s\\fR\n", program->verb[i]->name);
        put_line(program->verb[i]->summary);
    }
    put_exit_status();
    puts(".SH ENVIRONMENT\n.TP\n\\fBLINNET_LEVEL\\fR");
    fputs("the best level of instructions that may be used, of this build's:", stdout);
    for (int i = 0; i < LNT_LEVEL_COUNT; i++)
        printf("%s %s", i ? "," : "", lnt_level_text((lnt_level)i));
    putchar('\n');
}

void lnt_print_manual(const lnt_cli *program, const lnt_verb *verb)
{
    if (verb)
        put_verb_page(program, verb);
    else
        put_program_page(program);
    put_see_also(program, verb);
}
