/*
 * memwall completions: print shell completions and the generated parts of the man pages from
 * the tables of commands and options.
 *
 * `make update-tables` writes the results to share/completions and man; a test fails if the
 * files there differ from this output.
 */
#include "config.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/lookalike.h"
#include "src/base/paths.h"
#include "src/command.h"
#include "ui/store/store.h"
#include "ui/talk/commands.h"
#include "ui/term/theme.h"

static const char head[] = "written by \"memwall completions\" from the table of options";

static bool is_shown(const struct option *row, const struct command *c)
{
    return (row->commands & c->bit) != 0 && !row->is_hidden;
}

/* The help of a row with its default for c (NULL: for all commands), until the next call. */
static const char *help_of(const struct option *row, const struct command *c)
{
    static char text[200];

    return option_help(row, c != NULL ? c->name : NULL, text, sizeof text);
}

/* Returns the kind of values that are to be listed: models, themes, chats, files or none. */
static const char *source_of(const struct option *row)
{
    switch (row - options_table) {
    case OPT_MODEL: return "models";
    case OPT_THEME: return "themes";
    case OPT_OPEN: return "chats";
    }
    return row->kind == KIND_FILE ? "files" : "none";
}

/* Text of a shell for each source; the last row has none. */
struct offer {
    const char *source, *text;
};

static const char *text_of(const struct offer *all, const char *source)
{
    while (all->source != NULL && strcmp(all->source, source) != 0)
        all++;
    return all->source != NULL ? all->text : "";
}

/* Can the first positional of the command be a model? */
static bool has_model(const struct command *c)
{
    return (c->needs_model && !c->takes_arg) || c->model_first;
}

/* ---- bash ---- */

static void bash_command(const struct command *c)
{
    printf("    %s)\n        options=\"", c->name);
    for (int i = 0, n = 0; i < N_OPTION; i++)
        if (is_shown(&options_table[i], c))
            printf("%s--%s", n++ > 0 ? " " : "", options_table[i].name);
    puts("\"\n        case $prev in");
    for (int i = 0; i < N_OPTION; i++) {
        const struct option *row = &options_table[i];

        if (!is_shown(row, c) || row->arg == NULL)
            continue;
        printf("        --%s", row->name);
        if (row->letter != 0)
            printf(" | -%c", row->letter);
        if (option_values(row) != NULL)
            printf(") words=\"%s\" ;;\n", option_values(row));
        else
            printf(") words=:%s ;;\n", source_of(row));
    }
    puts("        esac");
    if (c->files != NULL)
        printf("        ending=%s\n", c->files);
    if (c->model_first)
        puts("        [[ -z $words && $cur != -* && $COMP_CWORD -eq 2 ]] && words=:models");
    else if (has_model(c))
        puts("        [[ -z $words && $cur != -* ]] && words=:models");
    puts("        ;;");
}

static void print_bash(void)
{
    const struct command *c;

    printf("# bash completion for memwall, %s\n", head);
    puts(
        "# Bash cuts words at colons, which names of models have: $2 is the last piece of $1.\n"
        "# The rest is a command that prints the names.\n"
        "_memwall_names()\n"
        "{\n"
        "    local name keep=${1%\"$2\"}\n"
        "    while IFS= read -r name; do\n"
        "        if [[ ${name,,} == \"${1,,}\"* ]]; then\n"
        "            name=${name:${#keep}}\n"
        "            COMPREPLY+=(\"${name// /\\\\ }\")\n"
        "        fi\n"
        "    done < <(\"${@:3}\" 2>/dev/null)\n"
        "}\n"
        "# Models, and beside them folders and *.gguf; any file if there are none of these.\n"
        "_memwall_models()\n"
        "{\n"
        "    _memwall_names \"$1\" \"$2\" memwall list --names\n"
        "    [[ $1 == \"$2\" ]] || return\n"
        "    if [[ ${#COMPREPLY[@]} -eq 0 ]]; then\n"
        "        compopt -o filenames\n"
        "        mapfile -t COMPREPLY < <(compgen -d -- \"$2\")\n"
        "    fi\n"
        "    mapfile -t -O ${#COMPREPLY[@]} COMPREPLY < <(compgen -f -X '!*.gguf' -- \"$2\")\n"
        "    [[ ${#COMPREPLY[@]} -gt 0 ]] || mapfile -t COMPREPLY < <(compgen -f -- \"$2\")\n"
        "}\n"
        "_memwall()\n"
        "{\n"
        "    local cur=$2 prev=$3 command=chat options='' words='' ending='' model=$2 at");
    fputs("    local commands=\" ", stdout);
    for (size_t i = 0; (c = command_next_shown(&i)) != NULL;)
        printf("%s ", c->name);
    puts("\"\n"
         "    # Bash cuts words at = and :, so the option may be two words back.\n"
         "    if [[ $prev == '=' ]]; then\n"
         "        prev=${COMP_WORDS[COMP_CWORD - 2]}\n"
         "    elif [[ $cur == '=' ]]; then\n"
         "        cur=''\n"
         "    elif [[ $prev == ':' || $cur == ':' ]]; then\n"
         "        at=$((COMP_CWORD - 1))\n"
         "        [[ $cur == ':' ]] && cur=''\n"
         "        [[ $prev == ':' ]] && at=$((at - 1))\n"
         "        model=${COMP_WORDS[at]}:$cur\n"
         "        prev=${COMP_WORDS[at - 1]}\n"
         "    fi\n"
         "    if [[ $COMP_CWORD -gt 1 && $commands == *\" ${COMP_WORDS[1]} \"* ]]; then\n"
         "        command=${COMP_WORDS[1]}\n"
         "    fi\n"
         "    if [[ $COMP_CWORD -eq 2 && ${COMP_WORDS[1]} == help ]]; then\n"
         "        mapfile -t COMPREPLY < <(compgen -W \"$commands\" -- \"$cur\")\n"
         "        return\n"
         "    fi\n"
         "    case $command in");
    for (size_t i = 0; (c = command_next_shown(&i)) != NULL;)
        bash_command(c);
    puts("    esac\n"
         "    COMPREPLY=()\n"
         "    case $words in\n"
         "    :none) return ;;\n"
         "    '' | :files | :models) ;;\n"
         "    :themes | :chats)\n"
         "        _memwall_names \"$model\" \"$cur\" memwall completions \"${words#:}\"\n"
         "        [[ $words == :chats || $cur != */* ]] && return\n"
         "        ;;\n"
         "    *)\n"
         "        mapfile -t COMPREPLY < <(compgen -W \"$words\" -- \"$cur\")\n"
         "        return\n"
         "        ;;\n"
         "    esac\n"
         "    if [[ -z $words && $cur == -* ]]; then\n"
         "        mapfile -t COMPREPLY < <(compgen -W \"$options\" -- \"$cur\")\n"
         "        return\n"
         "    fi\n"
         "    if [[ $COMP_CWORD -eq 1 ]]; then\n"
         "        mapfile -t COMPREPLY < <(compgen -W \"$commands\" -- \"$cur\")\n"
         "    fi\n"
         "    if [[ $words == :models ]]; then\n"
         "        _memwall_models \"$model\" \"$cur\"\n"
         "        return\n"
         "    fi\n"
         "    compopt -o filenames\n"
         "    if [[ -n $ending ]]; then\n"
         "        mapfile -t COMPREPLY < <(compgen -d -- \"$cur\"\n"
         "            compgen -f -X \"!*$ending\" -- \"$cur\")\n"
         "        return\n"
         "    fi\n"
         "    mapfile -t -O ${#COMPREPLY[@]} COMPREPLY < <(compgen -f -- \"$cur\")\n"
         "}\n"
         "complete -F _memwall memwall");
}

/* ---- zsh ---- */

/* Escape the characters that are special in single quotes of zsh's _arguments. */
static void zsh_text(const char *s)
{
    for (; *s != '\0'; s++) {
        if (*s == '\'')
            fputs("'\\''", stdout);
        else if (*s == '[' || *s == ']' || *s == ':')
            printf("\\%c", *s);
        else
            putchar(*s);
    }
}

static const struct offer zsh_offers[] = {
    { "models", "_memwall_models" },
    { "themes", "_memwall_themes" },
    { "chats", "_memwall_chats" },
    { "files", "_files" },
    { NULL, NULL },
};

static void zsh_option(const struct option *row, const struct command *c)
{
    if (row->letter != 0)
        printf("            '(-%c --%s)'{-%c,--%s}'", row->letter, row->name, row->letter,
               row->name);
    else
        printf("            '--%s", row->name);
    if (row->arg != NULL && row->letter == 0)
        putchar('=');
    putchar('[');
    zsh_text(help_of(row, c));
    putchar(']');
    if (row->arg != NULL) {
        printf(":%s:", row->arg);
        if (option_values(row) != NULL) {
            putchar('(');
            zsh_text(option_values(row));
            putchar(')');
        } else {
            fputs(text_of(zsh_offers, source_of(row)), stdout);
        }
    }
    puts("' \\");
}

static void zsh_argument(const struct command *c)
{
    if (c->model_first)
        puts("            '1:model:_memwall_models' \\");
    if (c->files != NULL)
        printf("            '*:argument:_files -g \"*%s\"'", c->files);
    else
        printf("            '*:argument:%s'",
               has_model(c) && !c->model_first ? "_memwall_models" : "_files");
    puts("\n        ;;");
}

static void print_zsh(void)
{
    const struct command *c;

    printf("#compdef memwall\n# zsh completion for memwall, %s\n", head);
    puts("_memwall_models() {\n"
         "    local -a models\n"
         "    models=(${(f)\"$(memwall list --names 2>/dev/null)\"})\n"
         "    compadd -M 'm:{a-zA-Z}={A-Za-z}' -a models\n"
         "    _files -g '*.gguf'\n"
         "}\n"
         "_memwall_themes() {\n"
         "    local -a themes\n"
         "    themes=(${(f)\"$(memwall completions themes 2>/dev/null)\"})\n"
         "    compadd -a themes\n"
         "    _files -g '*.theme'\n"
         "}\n"
         "_memwall_chats() {\n"
         "    local -a chats\n"
         "    chats=(${(f)\"$(memwall completions chats 2>/dev/null)\"})\n"
         "    compadd -a chats\n"
         "}\n"
         "_memwall() {\n"
         "    local -a names\n"
         "    local name=chat\n"
         "    names=(");
    for (size_t i = 0; (c = command_next_shown(&i)) != NULL;) {
        printf("        '%s:", c->name);
        zsh_text(c->help);
        puts("'");
    }
    puts("    )\n"
         "    if (( CURRENT == 2 )) && [[ $words[2] != -* ]]; then\n"
         "        _describe command names\n"
         "        _memwall_models\n"
         "        return\n"
         "    fi\n"
         "    if (( CURRENT == 3 )) && [[ $words[2] == help ]]; then\n"
         "        _describe command names\n"
         "        return\n"
         "    fi\n"
         "    if (( ${names[(I)$words[2]:*]} )); then\n"
         "        name=$words[2]\n"
         "        shift words\n"
         "        (( CURRENT-- ))\n"
         "    fi\n"
         "    case $name in");
    for (size_t i = 0; (c = command_next_shown(&i)) != NULL;) {
        printf("    %s)\n        _arguments -s -S \\\n", c->name);
        for (int k = 0; k < N_OPTION; k++)
            if (is_shown(&options_table[k], c))
                zsh_option(&options_table[k], c);
        zsh_argument(c);
    }
    puts("    esac\n"
         "}\n"
         "_memwall \"$@\"");
}

/* ---- fish ---- */

static void fish_text(const char *s)
{
    putchar('\'');
    for (; *s != '\0'; s++) {
        if (*s == '\'' || *s == '\\')
            putchar('\\');
        putchar(*s);
    }
    putchar('\'');
}

static const struct offer fish_offers[] = {
    { "models",
      " -x -k -a '(memwall list --names 2>/dev/null; __fish_complete_suffix .gguf)'" },
    { "themes", " -r -F -a '(memwall completions themes 2>/dev/null)'" },
    { "chats", " -x -k -a '(memwall completions chats 2>/dev/null)'" },
    { "files", " -r -F" },
    { "none", " -x" },
    { NULL, NULL },
};

static void fish_command(const struct command *c)
{
    if (c->files != NULL)
        printf("complete -c memwall -n '__memwall_is %s' -f -k -a '(__fish_complete_suffix "
               "%s)'\n",
               c->name, c->files);
    if (has_model(c))
        printf("complete -c memwall -n '__memwall_is %s' -a '(memwall list --names "
               "2>/dev/null)'\n",
               c->name);
    for (int i = 0; i < N_OPTION; i++) {
        const struct option *row = &options_table[i];

        if (!is_shown(row, c))
            continue;
        printf("complete -c memwall -n '__memwall_is %s' -l %s", c->name, row->name);
        if (row->letter != 0)
            printf(" -s %c", row->letter);
        if (option_values(row) != NULL) {
            fputs(" -x -a ", stdout);
            fish_text(option_values(row));
        } else if (row->arg != NULL) {
            fputs(text_of(fish_offers, source_of(row)), stdout);
        }
        fputs(" -d ", stdout);
        fish_text(help_of(row, c));
        putchar('\n');
    }
}

static void print_fish(void)
{
    const struct command *c;

    printf("# fish completion for memwall, %s\n", head);
    fputs("set -g __memwall_commands", stdout);
    for (size_t i = 0; (c = command_next_shown(&i)) != NULL;)
        printf(" %s", c->name);
    puts("\n"
         "function __memwall_is -a name\n"
         "    set -l words (commandline -opc)\n"
         "    if test (count $words) -gt 1; and contains -- $words[2] $__memwall_commands\n"
         "        test $words[2] = $name\n"
         "        return\n"
         "    end\n"
         "    test $name = chat; and not __memwall_is_help\n"
         "end\n"
         "function __memwall_is_help\n"
         "    set -l words (commandline -opc)\n"
         "    test (count $words) -eq 2; and test $words[2] = help\n"
         "end\n"
         "function __memwall_is_first\n"
         "    test (count (commandline -opc)) -eq 1\n"
         "end");
    for (size_t i = 0; (c = command_next_shown(&i)) != NULL;) {
        printf("complete -c memwall -n __memwall_is_first -a %s -d ", c->name);
        fish_text(c->help);
        putchar('\n');
    }
    puts("complete -c memwall -n __memwall_is_help -f -a \"$__memwall_commands\"");
    for (size_t i = 0; (c = command_next_shown(&i)) != NULL;)
        fish_command(c);
}

/* ---- man pages ---- */

/* Write dashes as minus signs, so that options can be copied.  Escape a dot or quote at the
 * start of a line, which would be a request. */
static void roff_text(const char *s)
{
    if (*s == '.' || *s == '\'')
        fputs("\\&", stdout);
    for (; *s != '\0'; s++) {
        if (*s == '-')
            fputs("\\-", stdout);
        else if (*s == '\\')
            fputs("\\e", stdout);
        else
            putchar(*s);
    }
}

static void print_man_options(const struct command *c)
{
    for (int g = 0; g < N_GROUP; g++) {
        bool any = false;

        for (int i = 0; i < N_OPTION; i++) {
            const struct option *row = &options_table[i];

            if ((int)row->group != g || !is_shown(row, c))
                continue;
            if (!any)
                printf(".SS %s\n", option_group_title((enum option_group)g));
            any = true;
            puts(".TP");
            fputs(row->arg != NULL ? ".BI \"" : ".B \"", stdout);
            if (row->letter != 0)
                printf("\\-%c, ", row->letter);
            fputs("\\-\\-", stdout);
            roff_text(row->name);
            if (row->arg != NULL)
                printf(" \" %s", row->arg);
            else
                putchar('"');
            putchar('\n');
            roff_text(help_of(row, c));
            putchar('\n');
        }
    }
}

static void print_man_examples(const struct command *c)
{
    const char *text = c->examples;

    puts(".EX");
    while (*text != '\0') {
        char line[128];
        int n = (int)strcspn(text, "\n");

        snprintf(line, sizeof line, "%.*s", n, text);
        roff_text(line);
        putchar('\n');
        text += n + (text[n] == '\n');
    }
    puts(".EE");
}

/* The list of memwall(1): each command, its help as a sentence, its page. */
static void print_man_commands(void)
{
    const struct command *c;

    for (size_t i = 0; (c = command_next_shown(&i)) != NULL;) {
        printf(".TP\n.B %s\n%c", c->name, toupper((unsigned char)c->help[0]));
        roff_text(c->help + 1);
        printf(".\nSee\n.BR memwall\\-%s (1).\n", c->name);
    }
}

/* "; also /exit, /bye" */
static void print_other_names(const char *also)
{
    const char *comma = "; also /";

    for (; also != NULL && *also != '\0'; also += strspn(also, " ")) {
        char name[40];

        snprintf(name, sizeof name, "%.*s", (int)strcspn(also, " "), also);
        fputs(comma, stdout);
        roff_text(name);
        comma = ", /";
        also += strlen(name);
    }
}

/* The list of memwall-chat(1): the commands of the chat. */
static void print_man_slash(void)
{
    for (const struct slash_command *c = command_list(); c->name != NULL; c++) {
        printf(".TP\n.%s \"/", c->args[0] != '\0' ? "BI" : "B");
        roff_text(c->name);
        putchar('"');
        if (c->args[0] != '\0')
            printf(" \" %s\"", c->args);
        putchar('\n');
        roff_text(c->help);
        print_other_names(c->also);
        putchar('\n');
    }
}

/* The commands that read a setting from the configuration. */
static void print_readers(const struct option *row)
{
    const struct command *c;
    const char *comma = "";

    for (size_t i = 0; (c = command_next_shown(&i)) != NULL;)
        if (c->reads_config && (row->commands & c->bit) != 0) {
            printf("%s%s", comma, c->name);
            comma = ", ";
        }
}

/* The list of memwall.conf(5): each setting, its range, who reads it. */
static void print_man_settings(void)
{
    for (int i = 0; i < N_OPTION; i++) {
        const struct option *row = &options_table[i];

        if (row->reach == REACH_LINE)
            continue;
        fputs(".TP\n.BI \"", stdout);
        roff_text(row->name);
        printf(" = \" %s\n", option_form(row));
        roff_text(help_of(row, NULL));
        if (row->max > 0 && row->max < INT32_MAX)
            printf("; from %g to %.10g", row->min, row->max);
        fputs("\n.br\nFor ", stdout);
        print_readers(row);
        if ((row->commands & CMD_CHAT) != 0)
            printf("; a chat applies it %s", option_reach_text(row->reach));
        puts(".");
    }
}

/* One option per line: command, option, letter, argument, group, help, with tabs between. */
static void print_list(void)
{
    const struct command *c;

    for (size_t i = 0; (c = command_next_shown(&i)) != NULL;) {
        for (int k = 0; k < N_OPTION; k++) {
            const struct option *row = &options_table[k];

            if (is_shown(row, c))
                printf("%s\t--%s\t%c\t%s\t%s\t%s\n", c->name, row->name,
                       row->letter != 0 ? row->letter : '-', row->arg != NULL ? row->arg : "-",
                       option_group_title(row->group), help_of(row, c));
        }
    }
}

/* ---- names, which the completions ask for ---- */

static void print_name(void *ctx, const char *name)
{
    (void)ctx;
    puts(name);
}

static void print_themes(void)
{
    struct err ignored = ERR_INIT; /* without folders there are only the built-in themes */
    struct paths paths;

    theme_names(paths_find(&paths, &ignored) == 0 ? paths.config_dir : NULL, print_name, NULL);
}

static void print_chats(void)
{
    struct err ignored = ERR_INIT; /* a folder that cannot be read has no chats */
    struct store_entry *list = NULL;
    struct paths paths;
    char dir[600];
    size_t n = 0;

    if (paths_find(&paths, &ignored) != 0)
        return;
    snprintf(dir, sizeof dir, "%s/chats", paths.data_dir);
    if (store_list(dir, &list, &n, &ignored) != 0)
        return;
    for (size_t i = 0; i < n; i++)
        if (!list[i].is_damaged)
            puts(list[i].name);
    free(list);
}

static int run_completions(const struct options *o)
{
    static const struct {
        const char *name;
        void (*print)(void);
    } kinds[] = {
        { "bash", print_bash },
        { "zsh", print_zsh },
        { "fish", print_fish },
        { "list", print_list },
        { "commands", print_man_commands },
        { "slash", print_man_slash },
        { "settings", print_man_settings },
        { "themes", print_themes },
        { "chats", print_chats },
    };
    static const struct {
        const char *prefix;
        void (*print)(const struct command *c);
    } lists[] = {
        { "options-", print_man_options },
        { "examples-", print_man_examples },
    };
    const char *what = o->arg != NULL ? o->arg : "";
    struct err e = ERR_INIT;

    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        if (strcmp(kinds[i].name, what) != 0)
            continue;
        kinds[i].print();
        return EXIT_OK;
    }
    for (size_t i = 0; i < sizeof lists / sizeof lists[0]; i++) {
        size_t n = strlen(lists[i].prefix);
        const struct command *c =
            strncmp(what, lists[i].prefix, n) == 0 ? command_named(what + n) : NULL;

        if (c == NULL)
            continue;
        lists[i].print(c);
        return EXIT_OK;
    }
    err_set(&e, ERR_ARGUMENT, "unknown shell \"%.40s\"; use bash, zsh or fish", what);
    (void)lookalike_explain(&e, what);
    return report_usage(&cmd_completions, &e);
}

const struct command cmd_completions = {
    .name = "completions",
    .args = "bash|zsh|fish",
    .help = "print shell completions",
    .about = "Print the completions of a shell.  For the source tree: \"list\" prints all\n"
             "options, one per line; \"commands\", \"slash\", \"settings\", "
             "\"options-COMMAND\" and\n"
             "\"examples-COMMAND\" print the generated parts of the man pages; \"themes\" and "
             "\"chats\"\n"
             "print the names that the completions offer.",
    .examples = "source <(memwall completions bash)\n",
    .asks = "completion tab complete bash zsh fish shell",
    .bit = CMD_COMPLETIONS,
    .is_hidden = true,
    .takes_arg = true,
    .run = run_completions,
};
