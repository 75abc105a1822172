# share: completions, themes
