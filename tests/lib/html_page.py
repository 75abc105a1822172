"""Parse a page strictly: elements that are not closed, ids given twice, names that are missing and
references to anything outside are errors."""
import json
import re
from html.parser import HTMLParser

VOID = {"meta", "br", "hr", "img", "link", "input"}
# Attributes that make a browser load or run something.
LOADS = {"src", "srcset", "action", "formaction", "data", "poster", "background", "ping"}


class Page(HTMLParser):
    def __init__(self, text):
        super().__init__(convert_charrefs=True)
        self.open, self.ids, self.refs, self.errors = [], [], [], []
        self.tags, self.text, self.data, self.images = [], [], {}, []
        self.at_data = None
        self.feed(text)
        self.close()
        self.errors += [f"<{tag}> is not closed" for tag in self.open]
        self.errors += [f"id {i} twice" for i in set(self.ids) if self.ids.count(i) > 1]
        self.errors += [f"no element has the id {r}" for r in self.refs if r not in self.ids]
        if re.search(r"url\(|@import", text):
            self.errors.append("a style loads something")

    def handle_starttag(self, tag, attrs):
        attrs = dict(attrs)
        self.tags.append((tag, attrs))
        if tag not in VOID:
            self.open.append(tag)
        if "id" in attrs:
            self.ids.append(attrs["id"])
        for name, value in attrs.items():
            if name in ("aria-labelledby", "aria-describedby"):
                self.refs += value.split()
            if name in LOADS or name.startswith("on"):
                self.errors.append(f"<{tag} {name}={value!r}>")
            if name == "href":
                if value.startswith("#"):
                    self.refs.append(value[1:])
                else:
                    self.errors.append(f"<{tag}> links to {value}")
        if tag == "script":
            if attrs.get("type") != "application/json":
                self.errors.append("a script that runs")
            self.at_data = attrs.get("id")
            self.data[self.at_data] = ""
        if tag in ("iframe", "object", "embed", "link", "img", "base", "form"):
            self.errors.append(f"<{tag}>")
        if tag == "svg":
            self.images.append(attrs)
            if attrs.get("role") != "img" or "aria-labelledby" not in attrs:
                self.errors.append("a picture without a name")
        if tag in ("section", "nav") and not {"aria-labelledby", "aria-label"} & set(attrs):
            self.errors.append(f"<{tag}> without a name")

    def handle_startendtag(self, tag, attrs):
        self.handle_starttag(tag, attrs)
        if tag not in VOID:
            self.open.pop()

    def handle_endtag(self, tag):
        if not self.open or self.open[-1] != tag:
            self.errors.append(f"</{tag}> closes {self.open[-3:]}")
        else:
            self.open.pop()
        self.at_data = None

    def handle_data(self, data):
        if self.at_data is not None:
            self.data[self.at_data] += data
        elif "style" not in self.open:
            self.text.append(data)

    def json(self, name):
        """Returns the data of the element with the id data-NAME."""
        return json.loads(self.data["data-" + name])

    def words(self):
        return re.sub(r"\s+", " ", " ".join(self.text))
