# Theme files in, a C table of their names and texts out.
BEGIN {
    print "/* Made from share/themes. */"
    print "#include \"config.h\"\n\n#include <stddef.h>\n\n#include \"ui/look/theme.h\"\n"
    print "const struct theme_text theme_texts[] = {"
}
FNR == 1 {
    if (NR > 1)
        print "    },"
    name = FILENAME
    sub(/.*\//, "", name)
    sub(/\.theme$/, "", name)
    printf "    { \"%s\",\n", name
}
!/^#/ {
    gsub(/[\\"]/, "\\\\&")
    printf "      \"%s\\n\"\n", $0
}
END {
    print "    },\n    { NULL, NULL },\n};"
}
