#!/usr/bin/python3
"""Each file of the product includes the standard headers whose names it uses, itself or through
other files of Pawl.

A name that comes from somewhere else, such as from another standard header, is gone with the next
version of the compiler. compile_alone_test.py cannot see that, because it compiles these headers
(STANDARD) only once for all files.

    includes_test.py SOURCE_DIR
"""
import functools
import pathlib
import re
import subprocess
import sys

# The standard headers that many files use, each with some of its names.
STANDARD = {
    "algorithm": r"(all_of|any_of|clamp|copy|count_if|equal|fill|find|find_if|lower_bound|max"
    r"|max_element|min|min_element|none_of|remove_if|replace|reverse|search|sort|stable_sort"
    r"|transform|unique|upper_bound)\(|ranges::",
    "array": r"array\b",
    "atomic": r"atomic",
    "chrono": r"chrono\b",
    "condition_variable": r"condition_variable",
    "cstdint": r"u?int\d+_t\b",
    "deque": r"deque\b",
    "filesystem": r"filesystem\b",
    "functional": r"(bind|equal_to|function|greater|hash|invoke|less|ref)\b",
    "map": r"(multi)?map\b",
    "memory": r"(enable_shared_from_this|make_shared|make_unique|shared_ptr|unique_ptr|weak_ptr)\b",
    "mutex": r"(call_once|lock_guard|mutex|once_flag|scoped_lock|unique_lock)\b",
    "optional": r"(nullopt|optional)\b",
    "set": r"(multi)?set\b",
    "span": r"(as_bytes|span)\b",
    "string": r"(getline|stoi|stoul|stoull|string|to_string)\b",
    "string_view": r"string_view\b",
    "thread": r"(this_thread|thread)\b",
    "unordered_map": r"unordered_(multi)?map\b",
    "unordered_set": r"unordered_set\b",
    "variant": r"(get_if|holds_alternative|monostate|variant|visit)\b",
    "vector": r"vector\b",
}
# The standard says that these bring others along.
BRINGS = {"string": {"string_view"}}

INCLUDE = re.compile(r'^\s*#\s*include\s+[<"]([^>"]+)[>"]', re.M)
COMMENT_OR_TEXT = re.compile(r'//[^\n]*|"(\\.|[^"\\\n])*"')


class Tree:
    """The C++ files of the product, by their paths below the root."""

    def __init__(self, root):
        names = subprocess.run(
            ["git", "-C", root, "ls-files", "--cached", "--others", "--exclude-standard"]
            + ["src", "include"],
            check=True,
            capture_output=True,
            text=True,
        ).stdout.split()
        self.files = {
            name: (pathlib.Path(root) / name).read_text(encoding="utf-8")
            for name in names
            if name.endswith((".h", ".cc")) and (pathlib.Path(root) / name).exists()
        }

    def product(self):
        return sorted(name for name in self.files if not name.endswith("_test.cc"))

    @functools.lru_cache(maxsize=None)
    def others(self, name):
        """The headers that are not Pawl's and that the file includes, itself or through Pawl's."""
        seen, left, found = set(), [name], set()
        while left:
            file = left.pop()
            if file in seen:
                continue
            seen.add(file)
            for header in INCLUDE.findall(self.files[file]):
                own = self._own(file, header)
                if own:
                    left.append(own)
                else:
                    found.add(header)
        return frozenset(found)

    def _own(self, file, header):
        for folder in ("src", "include", pathlib.Path(file).parent):
            name = str(pathlib.Path(folder) / header)
            if name in self.files:
                return name
        return None

    def missing(self, name):
        """The standard headers whose names it uses without including them."""
        code = COMMENT_OR_TEXT.sub('""', self.files[name])
        has = set(self.others(name))
        for header in self.others(name):
            has |= BRINGS.get(header, set())
        return [
            header
            for header, names in STANDARD.items()
            if header not in has and re.search(rf"\bstd::({names})", code)
        ]


def main():
    tree = Tree(sys.argv[1])
    problems = [
        f"{name} uses names of <{header}>: add #include <{header}>"
        for name in tree.product()
        for header in tree.missing(name)
    ]
    print("\n".join(problems))
    print(f"{len(tree.product())} files, {len(problems)} missing includes")
    return 1 if problems or not tree.product() else 0


if __name__ == "__main__":
    sys.exit(main())
