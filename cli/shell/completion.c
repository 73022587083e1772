/* completion.c — completion in bash, zsh and fish, from the verbs' tables of options. What may follow an option is
 * told by its value: words in small letters are offered, files for FILE and the like, folders for DIR. */
#include "cli/shell/completion.h"

#include "base/cpu.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

/* The first of the pieces of text that are divided by the characters of between, and its length; NULL behind the
 * last. */
static const char *piece(const char *text, const char *between, size_t *length)
{
    text += strspn(text, between);
    *length = strcspn(text, between);
    return *length ? text : NULL;
}

static bool takes_folders(const lnt_option *o)
{
    return o->value && strstr(o->value, "DIR") && !strstr(o->value, "FILE");
}

/* FILE, VOICE, or a name with an ending: M.onnx. */
static bool takes_files(const lnt_option *o)
{
    const char *dot = o->value ? strchr(o->value, '.') : NULL;
    return o->value &&
           (strstr(o->value, "FILE") || strstr(o->value, "VOICE") || (dot && islower((unsigned char)dot[1])));
}

/* The words that are offered behind an option, divided by blanks. */
static const char *words_for(const lnt_option *o)
{
    const char *words = "";
    size_t n;
    if (o->value && strcmp(o->value, "L") == 0)
        for (int i = 0; i < LNT_LEVEL_COUNT; i++)
            words = lnt_cli_text("%s%s%s", words, i ? " " : "", lnt_level_text((lnt_level)i));
    for (const char *at = o->value ? o->value : ""; (at = piece(at, "|", &n)); at += n)
        if (islower((unsigned char)*at))
            words = lnt_cli_text("%s%s%.*s", words, *words ? " " : "", (int)n, at);
    return words;
}

/* What an option is for, on one line, up to the first semicolon that no parenthesis holds. */
static const char *in_short(const lnt_option *o)
{
    char *text = lnt_cli_text("%s", o->help);
    int depth = 0;
    for (char *c = text; *c; c++) {
        depth += (*c == '(') - (*c == ')');
        if (*c == '\n')
            *c = ' ';
        if (*c == ';' && depth == 0) {
            *c = '\0';
            break;
        }
    }
    return text;
}

/* Text between single quotes, escape before each of special. */
static void put_quoted(const char *text, const char *special, const char *quote)
{
    for (; *text; text++)
        if (*text == '\'')
            fputs(quote, stdout);
        else
            printf("%s%c", strchr(special, *text) ? "\\" : "", *text);
}

/* Nothing has to follow it. */
static bool is_flag(const lnt_option *o)
{
    return o->kind == LNT_OPTION_FLAG || o->kind == LNT_OPTION_FLAG_FILE;
}

typedef void option_writer(const lnt_verb *verb, const lnt_option *o, const char *name, size_t length);

/* write for each name of each option of a verb. */
static void each_option(const lnt_verb *verb, option_writer *write)
{
    for (size_t i = 0; i <= verb->n_options; i++) {
        const lnt_option *o = i < verb->n_options ? &verb->options[i] : &lnt_help_option;
        size_t n;
        for (const char *name = o->name; (name = piece(name, ", ", &n)); name += n)
            write(verb, o, name, n);
    }
}

static void bash_option(const lnt_verb *verb, const lnt_option *o, const char *name, size_t length)
{
    (void)verb;
    (void)o;
    printf(" %.*s", (int)length, name);
}

static void bash_value(const lnt_verb *verb, const lnt_option *o, const char *name, size_t length)
{
    if (is_flag(o))
        return;
    const char *words = takes_files(o) ? "@files" : takes_folders(o) ? "@folders" : words_for(o);
    printf("    %s:%.*s) echo '%s' ;;\n", verb->name, (int)length, name, *words ? words : "@nothing");
}

static const char bash_end[] =
    "_linnet() {\n"
    "    local cur=${COMP_WORDS[COMP_CWORD]} at=$((COMP_CWORD - 1)) values\n"
    "    COMPREPLY=()\n"
    "    # To bash --name=value is three words.\n"
    "    [[ $cur == = ]] && cur= || { [[ ${COMP_WORDS[at]} == = ]] && ((at--)); }\n"
    "    if ((COMP_CWORD == 1)); then\n"
    "        values=$_linnet_verbs\n"
    "    else\n"
    "        values=$(_linnet_values \"${COMP_WORDS[1]}:${COMP_WORDS[at]}\")\n"
    "        [[ -n $values || $cur != -* ]] || values=$(_linnet_options \"${COMP_WORDS[1]}\")\n"
    "    fi\n"
    "    case $values in\n"
    "    '' | @files) return ;;\n"
    "    @folders)\n"
    "        compopt -o filenames 2>/dev/null\n"
    "        mapfile -t COMPREPLY < <(compgen -d -- \"$cur\")\n"
    "        ;;\n"
    "    @nothing) ;;\n"
    "    *) mapfile -t COMPREPLY < <(compgen -W \"$values\" -- \"$cur\") ;;\n"
    "    esac\n"
    "    compopt +o default +o bashdefault 2>/dev/null\n"
    "}\n"
    "complete -o bashdefault -o default -F _linnet linnet";

static void bash(const lnt_cli *program)
{
    printf("# bash completion of linnet %s\n_linnet_verbs='--help --version", program->version);
    for (size_t i = 0; i < program->n_verbs; i++)
        printf(" %s", program->verb[i]->name);
    puts("'\n_linnet_options() {\n    case $1 in");
    for (size_t i = 0; i < program->n_verbs; i++) {
        printf("    %s) echo '", program->verb[i]->name);
        each_option(program->verb[i], bash_option);
        puts("' ;;");
    }
    puts("    esac\n}\n# What may follow an option: words, @files, @folders or @nothing; of options without, "
         "nothing.\n"
         "_linnet_values() {\n    case $1 in");
    for (size_t i = 0; i < program->n_verbs; i++)
        each_option(program->verb[i], bash_value);
    puts("    esac\n}");
    puts(bash_end);
}

/* All names of an option, which exclude each other. */
static void put_without_commas(const char *names)
{
    putchar('(');
    for (; *names; names++)
        if (*names != ',')
            putchar(*names);
    putchar(')');
}

static void zsh_option(const lnt_verb *verb, const lnt_option *o, const char *name, size_t length)
{
    const bool again = o->kind == LNT_OPTION_TEXTS || o->kind == LNT_OPTION_PAIRS;
    const char *joined = is_flag(o) ? "" : name[1] == '-' ? "=" : "+";
    (void)verb;
    fputs(" \\\n        '", stdout);
    if (again)
        putchar('*');
    else
        put_without_commas(o->name);
    printf("%.*s%s[", (int)length, name, joined);
    put_quoted(in_short(o), "[]\\:", "'\\''");
    putchar(']');
    for (int i = is_flag(o) ? 2 : o->kind != LNT_OPTION_PAIRS; i < 2; i++) {
        const char *words = words_for(o);
        putchar(':');
        put_quoted(o->value, "[]\\:", "'\\''");
        putchar(':');
        if (takes_files(o) || takes_folders(o))
            printf("_files%s", takes_files(o) ? "" : " -/");
        else
            printf(*words ? "(%s)" : " ", words);
    }
    putchar('\'');
}

static void zsh(const lnt_cli *program)
{
    puts("#compdef linnet\n_linnet() {\n    local state line\n"
         "    _arguments -C '--help[this text]' '--version[print the version]' '1: :->verb' '*:: :->rest'\n"
         "    if [[ $state == verb ]]; then\n        local -a verbs=(");
    for (size_t i = 0; i < program->n_verbs; i++) {
        printf("            '%s:", program->verb[i]->name);
        put_quoted(program->verb[i]->summary, ":\\", "'\\''");
        puts("'");
    }
    puts("        )\n        _describe verb verbs\n        return\n    fi\n    case $words[1] in");
    for (size_t i = 0; i < program->n_verbs; i++) {
        printf("    %s) _arguments", program->verb[i]->name);
        each_option(program->verb[i], zsh_option);
        puts(" \\\n        '*:file:_files' ;;");
    }
    puts("    esac\n}\n_linnet \"$@\"");
}

static void fish_option(const lnt_verb *verb, const lnt_option *o, const char *name, size_t length)
{
    const int dashes = name[1] == '-' ? 2 : 1;
    printf("complete -c linnet -n '__fish_seen_subcommand_from %s' -%c %.*s -d '", verb->name,
           dashes == 2 ? 'l' : 's', (int)length - dashes, name + dashes);
    put_quoted(in_short(o), "\\", "\\'");
    putchar('\'');
    if (is_flag(o))
        ;
    else if (takes_files(o))
        fputs(" -rF", stdout);
    else if (takes_folders(o))
        fputs(" -xa '(__fish_complete_directories)'", stdout);
    else
        printf(" -xa '%s'", words_for(o));
    putchar('\n');
}

static void fish(const lnt_cli *program)
{
    puts("complete -c linnet -n __fish_use_subcommand -f -l help -d 'this text'\n"
         "complete -c linnet -n __fish_use_subcommand -f -l version -d 'print the version'");
    for (size_t i = 0; i < program->n_verbs; i++) {
        printf("complete -c linnet -n __fish_use_subcommand -fa %s -d '", program->verb[i]->name);
        put_quoted(program->verb[i]->summary, "\\", "\\'");
        puts("'");
        each_option(program->verb[i], fish_option);
    }
}

bool lnt_print_completion(const lnt_cli *program, const char *shell)
{
    static const struct {
        const char *name;
        void (*write)(const lnt_cli *program);
    } shells[] = {{"bash", bash}, {"zsh", zsh}, {"fish", fish}};
    for (size_t i = 0; i < sizeof shells / sizeof *shells; i++)
        if (strcmp(shells[i].name, shell) == 0) {
            shells[i].write(program);
            return true;
        }
    return false;
}
