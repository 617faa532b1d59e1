//! `include/tilekern.h` is what cbindgen makes of the sources, and its INIT macros are their `INIT` constants.
//!
//! `TILEKERN_UPDATE_HEADER=1 cargo test -p tilekern-ffi --test header` rewrites it.

use std::collections::BTreeMap;
use std::path::Path;
use syn::{Expr, Item};

#[test]
fn header_is_fresh() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let config = cbindgen::Config::from_file(root.join("cbindgen.toml")).unwrap();
    let bindings = cbindgen::Builder::new()
        .with_config(config)
        .with_src(root.join("src/lib.rs"))
        .with_trailer(initialisers(&root.join("src")))
        .generate()
        .unwrap();
    let mut made = Vec::new();
    bindings.write(&mut made);
    let path = root.join("include/tilekern.h");
    if std::env::var_os("TILEKERN_UPDATE_HEADER").is_some() {
        std::fs::write(&path, &made).unwrap();
    }
    let committed = std::fs::read(&path).unwrap_or_default();
    assert!(made == committed, "include/tilekern.h is stale: run this test with TILEKERN_UPDATE_HEADER=1");
}

/// The macros: `INIT` of every `impl Args`, by position in the struct, since C99 and C++17 share no other form.
fn initialisers(sources: &Path) -> String {
    let mut items = Vec::new();
    parse(sources, &mut items);
    let fields: BTreeMap<String, Vec<String>> = items.iter().filter_map(fields).collect();
    let mut macros = String::from("// Initialisers: the size, and the defaults.\n");
    for (name, values) in items.iter().filter_map(init) {
        let values: Vec<String> = fields[&name].iter().map(|field| c_value(&name, &values[field])).collect();
        let macro_name = format!("{}_INIT", name.to_uppercase());
        macros += &format!("#define {macro_name} \\\n  {{ {} }}\n", values.join(", "));
    }
    // The guard opens in cbindgen.toml: cbindgen's own would end before the macros.
    macros + "\n#endif // TILEKERN_H\n"
}

fn parse(directory: &Path, items: &mut Vec<Item>) {
    let mut paths: Vec<_> = std::fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    for path in paths {
        if path.is_dir() {
            parse(&path, items);
        } else {
            items.extend(syn::parse_file(&std::fs::read_to_string(path).unwrap()).unwrap().items);
        }
    }
}

/// The fields of a struct in order.
fn fields(item: &Item) -> Option<(String, Vec<String>)> {
    let Item::Struct(item) = item else { return None };
    let names = item.fields.iter().filter_map(|field| Some(field.ident.as_ref()?.to_string())).collect();
    Some((item.ident.to_string(), names))
}

/// The values of an `impl Args`.
fn init(item: &Item) -> Option<(String, BTreeMap<String, Expr>)> {
    let Item::Impl(item) = item else { return None };
    let (_, of, _) = item.trait_.as_ref()?;
    let (true, syn::Type::Path(name)) = (of.is_ident("Args"), &*item.self_ty) else { return None };
    let value = item.items.iter().find_map(|item| match item {
        syn::ImplItem::Const(constant) if constant.ident == "INIT" => Some(&constant.expr),
        _ => None,
    });
    let Some(Expr::Struct(value)) = value else { panic!("INIT of {} is no struct", name.path.segments[0].ident) };
    let values = value.fields.iter().map(|field| match &field.member {
        syn::Member::Named(field_name) => (field_name.to_string(), field.expr.clone()),
        syn::Member::Unnamed(_) => panic!("a field without a name"),
    });
    Some((name.path.segments[0].ident.to_string(), values.collect()))
}

fn c_value(name: &str, value: &Expr) -> String {
    let text = quote::quote!(#value).to_string().replace(' ', "");
    match text.as_str() {
        "size_of::<Self>()" => format!("sizeof({name})"),
        "None" | "core::ptr::null_mut()" | "core::ptr::null()" => "NULL".into(),
        "CBool::FALSE" => "false".into(),
        "CBool::TRUE" => "true".into(),
        _ if text.starts_with("[0;") => "{ 0 }".into(),
        constant if constant.starts_with("TK_") => constant.into(),
        number if number.trim_start_matches('-').starts_with(|c: char| c.is_ascii_digit()) => number.into(),
        other => panic!("{name}: {other} has no C form here"),
    }
}
