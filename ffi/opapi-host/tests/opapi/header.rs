//! `include/tilekern_aclnn.h` is what cbindgen makes of the symbols, behind the types and codes of `tilekern-acl`.
//!
//! `TILEKERN_UPDATE_HEADER=1 cargo test -p tilekern-opapi-host --test opapi header` rewrites it.

use crate::common::{installation, library, root, succeed};
use std::process::Command;

#[test]
fn header_is_fresh() {
    let config = cbindgen::Config::from_file(root().join("cbindgen.toml")).unwrap();
    let bindings = cbindgen::Builder::new()
        .with_config(config)
        .with_src(root().join("src/lib.rs"))
        .with_after_include(types())
        .with_trailer("\n#endif // TILEKERN_ACLNN_H")
        .generate()
        .unwrap();
    let mut made = Vec::new();
    bindings.write(&mut made);
    let path = root().join("include/tilekern_aclnn.h");
    if std::env::var_os("TILEKERN_UPDATE_HEADER").is_some() {
        std::fs::write(&path, &made).unwrap();
    }
    let committed = std::fs::read(&path).unwrap_or_default();
    assert!(made == committed, "include/tilekern_aclnn.h is stale: run this test with TILEKERN_UPDATE_HEADER=1");
}

fn source(name: &str) -> String {
    std::fs::read_to_string(root().join("../acl/src").join(name)).unwrap()
}

/// The types, enumerations and codes of the headers.
fn types() -> String {
    let mut text = String::from("\n");
    let types = source("types.rs");
    for (c, of) in [("int", "aclError"), ("int32_t", "aclnnStatus"), ("void *", "aclrtStream")] {
        text += &format!("typedef {c}{}{of};\n", if c.ends_with('*') { "" } else { " " });
    }
    text += "typedef void *aclrtContext;\ntypedef void *aclrtEvent;\n";
    for name in block(&types, "opaque! {").split_whitespace() {
        text += &format!("typedef struct {name} {name};\n");
    }
    for item in block(&types, "numbers! {").split('}').filter(|item| item.contains('{')) {
        let (head, values) = item.split_once('{').unwrap();
        let name = head.split('(').next().unwrap().trim();
        text += &format!("\ntypedef enum {name} {{\n");
        for value in values.split(',').map(str::trim).filter(|value| !value.is_empty()) {
            text += &format!("  {},\n", value.replace("0x10_0000", "0x100000"));
        }
        text += &format!("}} {name};\n");
    }
    text += "\n";
    for line in types.lines().filter_map(|line| line.strip_prefix("pub const ")) {
        let (name, value) = line.trim_end_matches(';').split_once(": ").unwrap();
        text += &format!("#define {name} {}\n", value.split_once(" = ").unwrap().1);
    }
    text += "\n#define ACLNN_SUCCESS 0\n";
    for line in block(&source("codes.rs"), "const NAMES").lines() {
        if let Some((code, name)) = line.trim().strip_prefix('(').and_then(|line| line.split_once(", ")) {
            text += &format!("#define {} {code}\n", name.trim_matches(&['"', ')', ','][..]));
        }
    }
    text
}

/// What stands in a block that begins with `start`, without its comments.
fn block(source: &str, start: &str) -> String {
    let rest = &source[source.find(start).unwrap()..];
    let lines = rest.lines().skip(1).take_while(|line| !matches!(*line, "}" | "];"));
    lines.filter(|line| !line.trim_start().starts_with("//")).flat_map(|line| [line, "\n"]).collect()
}

/// Names and values of the enumerations and macros.
fn numbers(header: &str) -> Vec<(&str, &str)> {
    let of_enum = header.lines().filter_map(|line| line.trim().strip_suffix(',')?.split_once(" = "));
    let of_macro = header.lines().filter_map(|line| line.strip_prefix("#define ")?.split_once(' '));
    of_enum.chain(of_macro).filter(|(name, _)| name.starts_with("ACL")).collect()
}

/// Prototypes, one to a line.
fn prototypes(header: &str) -> Vec<(String, String)> {
    let (_, functions) = header.split_once("extern \"C\" {").unwrap();
    let without: String =
        functions.lines().filter(|line| !line.starts_with("//") && !line.starts_with('#')).flat_map(|line| [line, " "]).collect();
    let text = without.split(';').map(|one| one.split_whitespace().collect::<Vec<_>>().join(" "));
    let named = text.filter_map(|one| {
        let name = one.split_once('(')?.0.rsplit([' ', '*']).next()?.to_string();
        Some((name, one))
    });
    named.collect()
}

/// Every function of the header is exported, and nothing else is.
#[test]
fn header_has_every_symbol() {
    let header = std::fs::read_to_string(root().join("include/tilekern_aclnn.h")).unwrap();
    let mut declared: Vec<String> = prototypes(&header).into_iter().map(|(name, _)| name).collect();
    let listed = succeed(Command::new("nm").args(["-D", "--defined-only", "-P"]).arg(library().join("libtilekern_opapi.so")));
    let mut exported: Vec<String> = listed.lines().map(|line| line.split(' ').next().unwrap().to_string()).collect();
    declared.sort();
    exported.sort();
    assert!(declared.len() > 100);
    assert_eq!(declared, exported);
}

/// Every header of an installation, by itself, in C and in C++.
#[test]
fn installed_headers_compile() {
    let include = installation().join("include");
    let mut count = 0;
    for directory in ["acl", "aclnn", "aclnnop", "."] {
        for entry in std::fs::read_dir(include.join(directory)).unwrap() {
            let header = entry.unwrap().path();
            if header.is_dir() {
                continue;
            }
            for (compiler, language, standard) in [("cc", "c", "c99"), ("cc", "c", "c11"), ("c++", "c++", "c++17")] {
                let mut check = Command::new(compiler);
                check.args([
                    "-x",
                    language,
                    &format!("-std={standard}"),
                    "-fsyntax-only",
                    "-Wall",
                    "-Wextra",
                    "-pedantic",
                    "-Werror",
                ]);
                succeed(check.arg("-include").arg(&header).arg("/dev/null"));
            }
            count += 1;
        }
    }
    assert_eq!(count, 18);
}

/// The values and the prototypes are those of the public headers of ACL, which the package torch-npu carries.
#[test]
fn header_agrees_with_acl() {
    let Some(include) = crate::common::acl_headers() else {
        println!("skipped: the headers of ACL are not to be had (no network, or no pip)");
        return;
    };
    let header = std::fs::read_to_string(root().join("include/tilekern_aclnn.h")).unwrap();
    let theirs = all_text(&include);
    let known = |name: &str| theirs.split(|c: char| !c.is_alphanumeric() && c != '_').any(|word| word == name);
    let (mut program, mut compared) = (String::from("#include \"acl/acl.h\"\n"), [0, 0]);
    for (name, value) in numbers(&header) {
        if known(name) {
            program += &format!("static_assert((long long)({name}) == {value}, \"{name}\");\n");
            compared[0] += 1;
        }
    }
    program += "extern \"C\" {\n";
    for (name, prototype) in prototypes(&header) {
        if known(&name) && !prototype.contains("aclnn") {
            // Two declarations of one C function must be the same.
            program += &format!("{prototype};\n");
            compared[1] += 1;
        }
    }
    program += "}\n";
    println!("{} numbers and {} prototypes are in the headers of ACL", compared[0], compared[1]);
    assert!(compared[0] > 120 && compared[1] > 45, "{compared:?}");
    let file = crate::common::scratch().join("agrees.cpp");
    std::fs::write(&file, program).unwrap();
    succeed(Command::new("c++").args(["-std=c++17", "-fsyntax-only", "-I"]).arg(include).arg(file));
}

fn all_text(directory: &std::path::Path) -> String {
    let mut text = String::new();
    for entry in std::fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        text += &if path.is_dir() { all_text(&path) } else { std::fs::read_to_string(&path).unwrap_or_default() };
    }
    text
}
