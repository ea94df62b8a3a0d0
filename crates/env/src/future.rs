//! Work of one core that ends later.

use std::future::Future;
use std::pin::Pin;

/// A future that lives on one core.
pub type LocalFuture<T> = Pin<Box<dyn Future<Output = T>>>;
