//! The modules of a crate: which file each stands in, what it defines, imports and mentions. Tests
//! are left out.

use super::lexer::{Kind, Token};
use super::product;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// A `use` of one name.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Import {
    pub(super) path: Vec<String>,
    /// What it is called here: `*` stands for all that is there.
    pub(super) name: String,
    pub(super) line: usize,
    /// Others may take it from here.
    pub(super) is_public: bool,
}

/// A path of two names or more in the code.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Mention {
    pub(super) path: Vec<String>,
    pub(super) line: usize,
}

/// A module: a file of its own, or a part of one.
#[derive(Default, Debug)]
pub(super) struct Module {
    /// Where it stands.
    pub(super) file: String,
    pub(super) parent: Option<usize>,
    pub(super) children: BTreeMap<String, usize>,
    /// The names that it defines, children aside.
    pub(super) items: BTreeSet<String>,
    /// The macros among them.
    pub(super) macros: BTreeSet<String>,
    pub(super) imports: Vec<Import>,
    pub(super) mentions: Vec<Mention>,
    /// Names that its code uses bare, and where first.
    pub(super) words: BTreeMap<String, usize>,
    /// Macros that it calls by name, and where first.
    pub(super) calls: BTreeMap<String, usize>,
}

/// Where sources come from.
pub(super) trait Sources {
    /// The text of a file; `None` where there is none.
    fn text(&self, path: &str) -> Option<&str>;
}

/// The modules of the crate whose root is the file `root`; the first is the root.
pub(super) fn modules(root: &str, sources: &dyn Sources) -> Vec<Module> {
    let mut out = vec![Module {
        file: root.to_owned(),
        ..Module::default()
    }];
    let folder = parent_of(root);
    let mut left = vec![(0, folder)];
    while let Some((module, folder)) = left.pop() {
        let file = out[module].file.clone();
        let Some(text) = sources.text(&file) else {
            continue;
        };
        let tokens = product::tokens(text);
        let mut reader = Reader {
            tokens: &tokens,
            at: 0,
            depth: 0,
            scopes: vec![Scope {
                module,
                depth: 0,
                folder,
            }],
            modules: &mut out,
            sources,
            files: Vec::new(),
        };
        reader.read();
        left.extend(reader.files);
    }
    out
}

fn parent_of(path: &str) -> PathBuf {
    Path::new(path).parent().unwrap_or(Path::new("")).to_owned()
}

/// Where the files of the modules stand that the module in `file` declares.
fn folder_of(file: &str) -> PathBuf {
    let path = Path::new(file);
    match path.file_name().and_then(|it| it.to_str()) {
        Some("mod.rs") => parent_of(file),
        _ => path.with_extension(""),
    }
}

struct Scope {
    module: usize,
    /// How many brackets are open around its items.
    depth: usize,
    folder: PathBuf,
}

struct Reader<'a> {
    tokens: &'a [Token<'a>],
    at: usize,
    depth: usize,
    scopes: Vec<Scope>,
    modules: &'a mut Vec<Module>,
    sources: &'a dyn Sources,
    /// Modules in files of their own that are still to be read, and where their children stand.
    files: Vec<(usize, PathBuf)>,
}

/// Words that come before the name of an item.
const DEFINERS: [&str; 8] = [
    "fn", "struct", "enum", "union", "trait", "type", "const", "static",
];

impl<'a> Reader<'a> {
    fn read(&mut self) {
        while let Some(token) = self.peek(0) {
            match token.kind {
                Kind::Sign => self.sign(token),
                Kind::Word => self.word(token),
                Kind::Text | Kind::Comment | Kind::Other => self.at += 1,
            }
        }
    }

    fn peek(&self, after: usize) -> Option<Token<'a>> {
        self.tokens.get(self.at + after).copied()
    }

    fn before(&self, back: usize) -> Option<Token<'a>> {
        let at = self.at.checked_sub(back)?;
        self.tokens.get(at).copied()
    }

    fn is_next(&self, after: usize, sign: &str) -> bool {
        self.peek(after).is_some_and(|it| it.is(sign))
    }

    fn module(&mut self) -> &mut Module {
        let module = self.scopes.last().map_or(0, |it| it.module);
        &mut self.modules[module]
    }

    /// What stands here is an item of the module, not of a function in it.
    fn is_at_items(&self) -> bool {
        self.scopes.last().is_some_and(|it| it.depth == self.depth)
    }

    fn sign(&mut self, token: Token<'a>) {
        match token.text {
            "#" => return self.attribute(),
            "{" | "(" | "[" => self.depth += 1,
            "}" | ")" | "]" => self.close(),
            _ => {}
        }
        self.at += 1;
    }

    fn close(&mut self) {
        self.depth = self.depth.saturating_sub(1);
        let is_over = self.scopes.last().is_some_and(|it| it.depth > self.depth);
        if is_over && self.scopes.len() > 1 {
            self.scopes.pop();
        }
    }

    /// Reads the paths that an attribute names.
    fn attribute(&mut self) {
        let start = self.at;
        self.at += if self.is_next(1, "!") { 2 } else { 1 };
        if !self.is_next(0, "[") {
            return;
        }
        let end = product::after_brackets(self.tokens, self.at);
        let tokens = &self.tokens[start..end];
        self.at = end;
        let texts = tokens.iter().filter(|it| it.kind == Kind::Text);
        let paths = texts.filter(|it| it.text.contains("::"));
        for text in paths {
            let mention = Mention {
                path: text.text.split("::").map(str::to_owned).collect(),
                line: text.line,
            };
            self.module().mentions.push(mention);
        }
    }

    fn word(&mut self, token: Token<'a>) {
        let is_path = self.before(1).is_some_and(|it| it.is("."));
        match token.text {
            _ if is_path => self.at += 1,
            "use" if !self.is_next(1, "<") => self.imports(),
            "mod" if self.is_at_items() => self.declare(),
            "macro_rules" if self.is_next(1, "!") => {
                let name = self.peek(2).map(|it| it.text.to_owned());
                self.module().macros.extend(name.clone());
                self.module().items.extend(name);
                self.at += 3;
            }
            "pub" if self.is_next(1, "(") => {
                self.at += 1;
                self.at = product::after_brackets(self.tokens, self.at);
            }
            word if self.is_at_items() && DEFINERS.contains(&word) => self.define(),
            _ => self.mention(),
        }
    }

    fn define(&mut self) {
        self.at += 1;
        if self.peek(0).is_some_and(|it| it.is_word("mut")) {
            self.at += 1;
        }
        let name = self.peek(0).filter(|it| it.kind == Kind::Word);
        if let Some(name) = name.filter(|it| !DEFINERS.contains(&it.text)) {
            self.module().items.insert(name.text.to_owned());
            self.at += 1;
        }
    }

    /// `mod name;` or `mod name { … }`.
    fn declare(&mut self) {
        let path = self.path_attribute();
        let name = self.peek(1).filter(|it| it.kind == Kind::Word);
        let Some(name) = name.map(|it| it.text.to_owned()) else {
            self.at += 1;
            return;
        };
        self.at += 2;
        let (parent, file, folder) = match self.scopes.last() {
            Some(it) => (
                it.module,
                self.modules[it.module].file.clone(),
                it.folder.clone(),
            ),
            None => return,
        };
        let new = self.modules.len();
        if self.is_next(0, "{") {
            self.at += 1;
            self.depth += 1;
            let scope = Scope {
                module: new,
                depth: self.depth,
                folder: folder.join(&name),
            };
            self.scopes.push(scope);
            self.add(parent, &name, file);
            return;
        }
        let found = match path {
            Some(path) => Some(parent_of(&file).join(path).to_string_lossy().into_owned()),
            None => self.file_of(&folder, &name),
        };
        if let Some(file) = found.filter(|it| !product::is_test(it)) {
            self.files.push((new, folder_of(&file)));
            self.add(parent, &name, file);
        }
    }

    fn add(&mut self, parent: usize, name: &str, file: String) {
        let new = self.modules.len();
        self.modules.push(Module {
            file,
            parent: Some(parent),
            ..Module::default()
        });
        self.modules[parent].children.insert(name.to_owned(), new);
    }

    fn file_of(&self, folder: &Path, name: &str) -> Option<String> {
        let places = [format!("{name}.rs"), format!("{name}/mod.rs")];
        let mut places = places
            .iter()
            .map(|it| folder.join(it).to_string_lossy().into_owned());
        places.find(|it| self.sources.text(it).is_some())
    }

    /// The file that `#[path = "…"]` right before this names.
    fn path_attribute(&self) -> Option<&'a str> {
        let mark = (1..8).find(|back| self.before(*back).is_some_and(|it| it.is("#")))?;
        let is_path = self.before(mark - 2).is_some_and(|it| it.is_word("path"));
        let file = self.before(mark - 4).filter(|_| is_path)?;
        (file.kind == Kind::Text).then_some(file.text)
    }

    /// `use …;`.
    fn imports(&mut self) {
        let is_public = self
            .before(1)
            .is_some_and(|it| it.is_word("pub") || it.is(")"));
        self.at += 1;
        let mut found = Vec::new();
        self.tree(&[], &mut found);
        for (mut path, name, line) in found {
            let name = match name {
                Some(name) => name,
                None => path.last().cloned().unwrap_or_default(),
            };
            if name == "*" {
                path.pop();
            }
            self.module().imports.push(Import {
                path,
                name,
                line,
                is_public,
            });
        }
    }

    /// One branch of a `use`, up to its comma, bracket or semicolon.
    fn tree(&mut self, stem: &[String], out: &mut Vec<(Vec<String>, Option<String>, usize)>) {
        let mut path = stem.to_vec();
        while let Some(token) = self.peek(0) {
            self.at += 1;
            match token.text {
                "::" if path.is_empty() => path.push(String::new()),
                "::" => {}
                "{" => return self.branches(&path, out),
                "as" => {
                    let name = self.peek(0).map(|it| it.text.to_owned());
                    self.at += 1;
                    out.push((path, name, token.line));
                    return;
                }
                "self" if !path.is_empty() => {}
                word if token.kind == Kind::Word || word == "*" => path.push(word.to_owned()),
                _ => {
                    self.at -= 1;
                    break;
                }
            }
            let is_last = ![Some("::"), Some("as")].contains(&self.peek(0).map(|it| it.text));
            if is_last && token.text != "::" {
                out.push((path, None, token.line));
                return;
            }
        }
    }

    fn branches(&mut self, stem: &[String], out: &mut Vec<(Vec<String>, Option<String>, usize)>) {
        while self.peek(0).is_some() && !self.is_next(0, "}") {
            let start = self.at;
            self.tree(stem, out);
            if self.is_next(0, ",") || self.at == start {
                self.at += 1;
            }
        }
        self.at += 1;
    }

    /// A path or a name in the code.
    fn mention(&mut self) {
        let Some(first) = self.peek(0) else { return };
        let is_inner = self.before(1).is_some_and(|it| it.is("::"));
        let mut path = vec![first.text.to_owned()];
        self.at += 1;
        while self.is_next(0, "::") {
            let Some(next) = self.peek(1).filter(|it| it.kind == Kind::Word) else {
                break;
            };
            path.push(next.text.to_owned());
            self.at += 2;
        }
        if is_inner {
            return;
        }
        let is_call = self.is_next(0, "(") || self.is_next(0, "!") || path.len() > 1;
        let is_named = first.text.starts_with(|it: char| it.is_ascii_uppercase());
        if is_call || is_named {
            let words = &mut self.module().words;
            words.entry(first.text.to_owned()).or_insert(first.line);
        }
        if path.len() > 1 {
            let line = first.line;
            self.module().mentions.push(Mention { path, line });
        } else if self.is_next(0, "!") && !self.is_next(1, "=") {
            self.call(first);
        }
    }

    /// A macro that makes items: what stands in its brackets is read as the module's.
    fn call(&mut self, name: Token<'a>) {
        let calls = &mut self.module().calls;
        calls.entry(name.text.to_owned()).or_insert(name.line);
        let opens = self.is_next(1, "{") || self.is_next(1, "(");
        if let (true, true, Some(scope)) = (opens, self.is_at_items(), self.scopes.last()) {
            let scope = Scope {
                module: scope.module,
                depth: self.depth + 1,
                folder: scope.folder.clone(),
            };
            self.scopes.push(scope);
            self.depth += 1;
            self.at += 2;
        }
    }
}

#[cfg(test)]
mod test {
    use super::*;

    impl Sources for BTreeMap<&str, &str> {
        fn text(&self, path: &str) -> Option<&str> {
            self.get(path).copied()
        }
    }

    fn one(source: &str) -> Module {
        let sources = BTreeMap::from([("src/lib.rs", source)]);
        modules("src/lib.rs", &sources).swap_remove(0)
    }

    fn imports(source: &str) -> Vec<String> {
        let module = one(source);
        let imports = module.imports.iter();
        imports
            .map(|it| format!("{}={}", it.name, it.path.join("::")))
            .collect()
    }

    #[test]
    fn a_use_is_taken_apart_whatever_its_form() {
        let source = "use crate::a::{self, b::{C, D as E}, f::*}; pub(crate) use super::g as _;\n\
            use ::std::fmt; fn x() -> impl Y + use<'_> {} use h;";
        let wanted = [
            "a=crate::a",
            "C=crate::a::b::C",
            "E=crate::a::b::D",
            "*=crate::a::f",
            "_=super::g",
            "fmt=::std::fmt",
            "h=h",
        ];
        assert_eq!(imports(source), wanted);
        let module = one(source);
        let public: Vec<_> = module.imports.iter().filter(|it| it.is_public).collect();
        assert_eq!(public.len(), 1);
    }

    #[test]
    fn tests_are_left_out_and_what_follows_them_is_not() {
        let source = "#[cfg(test)] use a::b;\n#[cfg(test)]\n#[x(y)]\nmod test { use c::d; }\n\
            #[cfg(test)]\nfn f<A, B>(x: [u8; 2]) where A: X, B: Y { e::g() }\n\
            struct S { #[cfg(test)] h: i::J<K>, l: m::N }\nuse o::p;";
        assert_eq!(imports(source), ["p=o::p"]);
        let module = one(source);
        let mentions: Vec<_> = module
            .mentions
            .iter()
            .map(|it| it.path.join("::"))
            .collect();
        assert_eq!(mentions, ["m::N"]);
    }

    #[test]
    fn paths_in_code_are_mentioned_and_those_of_visibility_are_not() {
        let source = "pub(in crate::a) fn f() { super::b::c(); d::E::<g::H>::i(); x.j::<K>(); }\n\
            #[serde(with = \"crate::k::l\")] struct M;";
        let module = one(source);
        let mentions: Vec<_> = module
            .mentions
            .iter()
            .map(|it| it.path.join("::"))
            .collect();
        assert_eq!(mentions, ["super::b::c", "d::E", "g::H", "crate::k::l"]);
        assert_eq!(Vec::from_iter(&module.items), ["M", "f"]);
    }

    #[test]
    fn modules_are_found_where_their_files_stand() {
        let sources = BTreeMap::from([
            (
                "src/lib.rs",
                "mod a; mod b { mod c; } #[path = \"odd.rs\"] mod d; mod test;",
            ),
            ("src/a/mod.rs", "mod e;"),
            ("src/a/e.rs", "mod f;"),
            ("src/a/e/f.rs", "macro! { struct G; }"),
            ("src/b/c.rs", ""),
            ("src/odd.rs", ""),
            ("src/test.rs", ""),
        ]);
        let all = modules("src/lib.rs", &sources);
        let mut files: Vec<_> = all.iter().map(|it| it.file.as_str()).collect();
        files.sort_unstable();
        let wanted = [
            "src/a/e.rs",
            "src/a/e/f.rs",
            "src/a/mod.rs",
            "src/b/c.rs",
            "src/lib.rs",
            "src/lib.rs",
            "src/odd.rs",
        ];
        assert_eq!(files, wanted);
        assert!(all.iter().any(|it| it.items.contains("G")));
    }
}
