//! Finding CANN at run time.
//!
//! 1. **The runtime**, `libacl_rt.so` or else `libascendcl.so` of the first place that has either: where the process looks for libraries
//!    anyway (LD_LIBRARY_PATH), then `lib64` of ASCEND_HOME_PATH, ASCEND_TOOLKIT_HOME, and the default directories.
//! 2. **Descriptors**, `libnnopbase.so`: of the same place, so that parts of two installations are not called together, else of
//!    another.
//! 3. **Operators**, first found first taken: `op_api/lib/libcust_opapi.so` of each directory in ASCEND_CUSTOM_OPP_PATH, and of the
//!    packages that `vendors/config.ini` below ASCEND_OPP_PATH lists; then CANN's own from the runtime's place, or the first other that
//!    has any, the split ones (`libopapi_nn.so` and so on) before `libopapi.so`, never both.
//!
//! Nothing is ever unloaded: the libraries have threads and destructors of their own. Nothing is printed, no variable is set. CANN
//! needs its environment (`set_env.sh`) beyond this; where that is missing, a library is not found, or phase one says so.

use crate::table::{Functions, Meta, Operators, Runtime, Table};
use core::ffi::{CStr, c_void};
use core::fmt;
use libloading::Library;
use std::boxed::Box;
use std::env;
use std::format;
use std::path::{Path, PathBuf};
use std::string::{String, ToString};
use std::sync::OnceLock;
use std::vec;
use std::vec::Vec;

/// Why there is no table.
#[derive(Clone, Debug)]
pub struct Missing {
    text: String,
}

impl Missing {
    /// One sentence, with the places that were searched.
    pub fn text(&self) -> &str {
        &self.text
    }
}

impl fmt::Display for Missing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl core::error::Error for Missing {}

/// A library that stays until the process ends.
type Loaded = &'static Library;

/// The CANN of this process: looked for once, at the first call.
///
/// ```
/// match tilekern_acl::load::cann() {
///     Ok(table) => println!("{:?}", table.operators.aclnnTopKTopPSampleV2),
///     Err(missing) => assert!(missing.to_string().starts_with("no CANN here")),
/// }
/// ```
pub fn cann() -> Result<&'static Table, &'static Missing> {
    static TABLE: OnceLock<Result<Table, Missing>> = OnceLock::new();
    TABLE.get_or_init(search).as_ref()
}

/// Everything out of one library, such as `libtilekern_opapi.so`, which has the operators run on this processor. It counts as CANN's own,
/// not as a package beside it.
///
/// # Safety
///
/// The library's symbols of ACL and aclnn have the prototypes of this crate, and running its initialisers is safe.
pub unsafe fn library(path: &Path) -> Result<Table, Missing> {
    let mut attempts = Attempts::default();
    let found = attempts.open(path, true);
    let mut operators = Operators::default();
    // SAFETY: as promised by the caller; the library is never closed.
    let parts = unsafe {
        let runtime = found.and_then(|library| attempts.part(path, Runtime::find(&address(library))));
        let meta = found.and_then(|library| attempts.part(path, Meta::find(&address(library))));
        found.inspect(|library| operators.find(&address(library), false));
        runtime.zip(meta)
    };
    let (runtime, meta) = parts.ok_or_else(|| Missing { text: format!("{}: {}", path.display(), attempts.text()) })?;
    // SAFETY: as promised by the caller.
    Ok(unsafe { Table::new(Functions { runtime, meta, operators }) })
}

fn search() -> Result<Table, Missing> {
    let (mut places, mut attempts) = (places(), Attempts::default());
    // SAFETY: libraries of these names have these prototypes, and none is ever closed.
    let runtime = places.iter().enumerate().find_map(|(i, place)| unsafe {
        let runtime = ["libacl_rt.so", "libascendcl.so"].into_iter().find_map(|name| {
            let path = place.join(name);
            let library = attempts.open(&path, true)?;
            attempts.part(&path, Runtime::find(&address(library)))
        });
        Some((runtime?, i))
    });
    let runtime = runtime.map(|(runtime, i)| {
        places[..=i].rotate_right(1);
        runtime
    });
    let meta = runtime.and_then(|_| places.iter().find_map(|place| attempts.open(&place.join("libnnopbase.so"), true)));
    // SAFETY: as above.
    let meta = meta.and_then(|library| attempts.part(Path::new("libnnopbase.so"), unsafe { Meta::find(&address(library)) }));
    let (runtime, meta) = runtime.zip(meta).ok_or_else(|| Missing { text: format!("no CANN here: {}", attempts.text()) })?;
    let mut operators = Operators::default();
    for (library, custom) in operator_libraries(&places) {
        // SAFETY: as above.
        unsafe { operators.find(&address(library), custom) };
    }
    // SAFETY: as above.
    Ok(unsafe { Table::new(Functions { runtime, meta, operators }) })
}

/// The directory that a variable names; none where it is empty, which would be the one that the process happens to be in.
fn directory(variable: &str) -> Option<PathBuf> {
    env::var_os(variable).filter(|value| !value.is_empty()).map(PathBuf::from)
}

/// The directories of libraries, in order; an empty path is wherever the process looks anyway.
fn places() -> Vec<PathBuf> {
    let named = ["ASCEND_HOME_PATH", "ASCEND_TOOLKIT_HOME"].into_iter().filter_map(directory);
    let home = directory("HOME").map(|home| home.join("Ascend"));
    let bases = [Some(PathBuf::from("/usr/local/Ascend")), home].into_iter().flatten();
    let usual = bases.flat_map(|base| ["cann", "ascend-toolkit/latest"].map(|name| base.join(name)));
    let roots = named.chain(usual).map(|root| root.join("lib64"));
    let mut places: Vec<PathBuf> = core::iter::once(PathBuf::new()).chain(roots).collect();
    // The same directory twice would only make the message longer.
    let mut seen = Vec::new();
    places.retain(|place| {
        !seen.contains(place) && {
            seen.push(place.clone());
            true
        }
    });
    places
}

/// The libraries of operators, each with whether it belongs to a package beside CANN.
fn operator_libraries(places: &[PathBuf]) -> Vec<(Loaded, bool)> {
    let mut attempts = Attempts::default();
    let mut found: Vec<(Loaded, bool)> =
        packages().iter().filter_map(|path| attempts.open(path, false)).map(|library| (library, true)).collect();
    // Of one place; never libraries of two installations, or of both kinds.
    let kinds = places.iter().flat_map(|place| [split_libraries(place), vec![place.join("libopapi.so")]]);
    let mut loaded = kinds.map(|paths| paths.iter().filter_map(|path| attempts.open(path, false)).collect::<Vec<_>>());
    let own = loaded.find(|libraries| !libraries.is_empty()).unwrap_or_default();
    found.extend(own.into_iter().map(|library| (library, false)));
    found
}

/// `libopapi_*.so` of a directory, sorted; where the process looks anyway, those that have an operator of the table.
fn split_libraries(place: &Path) -> Vec<PathBuf> {
    if place == Path::new("") {
        return ["nn", "math", "transformer"].map(|part| format!("libopapi_{part}.so").into()).into();
    }
    let entries = std::fs::read_dir(place).into_iter().flatten().flatten();
    let is_split = |path: &PathBuf| {
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or("");
        name.starts_with("libopapi_") && name.ends_with(".so")
    };
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.path()).filter(is_split).collect();
    paths.sort();
    paths
}

/// The libraries of packages beside CANN, in order.
fn packages() -> Vec<PathBuf> {
    let library = |package: &Path| package.join("op_api/lib/libcust_opapi.so");
    let custom = env::var_os("ASCEND_CUSTOM_OPP_PATH").unwrap_or_default();
    let mut packages: Vec<PathBuf> =
        env::split_paths(&custom).filter(|path| path != Path::new("")).map(|path| library(&path)).collect();
    if let Some(opp) = directory("ASCEND_OPP_PATH") {
        let vendors = opp.join("vendors");
        let config = std::fs::read_to_string(vendors.join("config.ini")).unwrap_or_default();
        packages.extend(load_priority(&config).map(|name| library(&vendors.join(name))));
    }
    packages.retain(|path| path.exists());
    packages
}

/// The names behind `load_priority=`.
fn load_priority(config: &str) -> impl Iterator<Item = &str> {
    let lines = config.lines().filter_map(|line| line.split_once('=')).filter(|(key, _)| key.trim() == "load_priority");
    lines.flat_map(|(_, names)| names.split(',')).map(str::trim).filter(|name| !name.is_empty())
}

/// Where libraries were looked for.
#[derive(Default)]
struct Attempts {
    /// Directories without them, by-name searches, in order.
    places: Vec<String>,
    /// What the dynamic linker said of libraries that are there.
    broken: Vec<String>,
}

impl Attempts {
    /// A part of the table out of the library of that path, or what that one lacks.
    fn part<T>(&mut self, path: &Path, part: Result<T, &'static str>) -> Option<T> {
        part.map_err(|symbol| self.broken.push(format!("{}: lacks {symbol}", path.display()))).ok()
    }

    /// The library of that path, or of that name wherever the process looks for libraries. A `global` one has symbols that other
    /// libraries need.
    fn open(&mut self, path: &Path, global: bool) -> Option<Loaded> {
        match open(path, global) {
            Ok(library) => Some(Box::leak(Box::new(library))),
            Err(error) => {
                // The linker's own words, where there are any.
                let text = core::error::Error::source(&error).map_or_else(|| error.to_string(), ToString::to_string);
                self.failed(path, &text);
                None
            }
        }
    }

    fn failed(&mut self, path: &Path, error: &str) {
        let directory = path.parent().filter(|parent| *parent != Path::new(""));
        let is_there = if directory.is_some() { path.exists() } else { !error.starts_with(&path.display().to_string()) };
        let (list, entry) = match directory {
            _ if is_there => (&mut self.broken, error.to_string()),
            Some(directory) => (&mut self.places, directory.display().to_string()),
            None => (&mut self.places, "LD_LIBRARY_PATH".to_string()),
        };
        if !list.contains(&entry) {
            list.push(entry);
        }
    }

    fn text(&self) -> String {
        let places = if self.places.is_empty() { String::new() } else { format!("looked in {}", self.places.join(", ")) };
        let broken = self.broken.join("; ");
        if places.is_empty() || broken.is_empty() { broken + &places } else { format!("{broken}; {places}") }
    }
}

#[cfg(unix)]
fn open(path: &Path, global: bool) -> Result<Library, libloading::Error> {
    use libloading::os::unix::{self, RTLD_GLOBAL, RTLD_LAZY, RTLD_LOCAL, RTLD_NOW};
    let flags = if global { RTLD_NOW | RTLD_GLOBAL } else { RTLD_LAZY | RTLD_LOCAL };
    // SAFETY: libraries of these names are CANN's, and may be initialised at any time.
    unsafe { unix::Library::open(Some(path), flags) }.map(Library::from)
}

#[cfg(not(unix))]
fn open(path: &Path, _global: bool) -> Result<Library, libloading::Error> {
    // SAFETY: libraries of these names are CANN's, and may be initialised at any time.
    unsafe { Library::new(path) }
}

/// The addresses of a library's symbols, null where it has none of that name.
fn address(library: Loaded) -> impl Fn(&CStr) -> *mut c_void {
    move |symbol| {
        // SAFETY: the address alone is taken.
        let found = unsafe { library.get::<*mut c_void>(symbol.to_bytes_with_nul()) };
        found.map_or(core::ptr::null_mut(), |address| *address)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn priorities_are_read() {
        let config = "[x]\nname = a\nload_priority=first, second,\n";
        assert_eq!(load_priority(config).collect::<Vec<_>>(), ["first", "second"]);
        assert_eq!(load_priority("").count(), 0);
    }

    #[test]
    fn a_missing_library_is_named() {
        // SAFETY: there is no such library.
        let missing = unsafe { library(Path::new("/nowhere/libopapi.so")) }.unwrap_err();
        assert_eq!(missing.text(), "/nowhere/libopapi.so: looked in /nowhere");
    }

    #[test]
    fn a_broken_library_says_why() {
        let path = env::temp_dir().join(format!("tilekern-broken-{}.so", std::process::id()));
        std::fs::write(&path, "no library").unwrap();
        // SAFETY: this is no library.
        let missing = unsafe { library(&path) }.unwrap_err();
        std::fs::remove_file(&path).unwrap();
        assert!(missing.text().contains("invalid ELF header") || missing.text().contains("file too short"), "{missing}");
    }
}
