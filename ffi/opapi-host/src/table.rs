//! Handles that C holds: numbers, looked up and never dereferenced. None is given out twice, so one that was destroyed stays
//! unknown; where addresses have 32 bits, not before 2^28 others were.

use core::sync::atomic::{AtomicUsize, Ordering};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// No address of 64 bits begins like this, so what is dereferenced by mistake faults.
static NEXT: AtomicUsize = AtomicUsize::new(0x5A5A << (usize::BITS - 16));

/// A handle that was never given out.
pub(crate) fn fresh() -> usize {
    NEXT.fetch_add(16, Ordering::Relaxed)
}

/// Locked, also behind a panic: what a table holds is whole between any two of its operations.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The live objects of one kind.
pub(crate) struct Table<T> {
    live: Mutex<BTreeMap<usize, Arc<T>>>,
}

impl<T> Table<T> {
    pub const fn new() -> Table<T> {
        Table { live: Mutex::new(BTreeMap::new()) }
    }

    /// The handle of a new object.
    pub fn insert(&self, object: T) -> usize {
        self.insert_with(|_| object)
    }

    /// The handle of a new object that knows it.
    pub fn insert_with(&self, make: impl FnOnce(usize) -> T) -> usize {
        let mut live = lock(&self.live);
        let mut handle = fresh();
        while handle == 0 || live.contains_key(&handle) {
            handle = fresh();
        }
        live.insert(handle, Arc::new(make(handle)));
        handle
    }

    pub fn get(&self, handle: usize) -> Option<Arc<T>> {
        lock(&self.live).get(&handle).cloned()
    }

    pub fn remove(&self, handle: usize) -> Option<Arc<T>> {
        lock(&self.live).remove(&handle)
    }

    /// Removes it if `test` allows.
    pub fn remove_if<E>(&self, handle: usize, test: impl FnOnce(&T) -> Result<(), E>) -> Result<Option<Arc<T>>, E> {
        let mut live = lock(&self.live);
        if let Some(object) = live.get(&handle) {
            test(object)?;
        }
        Ok(live.remove(&handle))
    }

    pub fn all(&self) -> Vec<Arc<T>> {
        lock(&self.live).values().cloned().collect()
    }

    pub fn len(&self) -> usize {
        lock(&self.live).len()
    }
}
