//! Results in words: diskspd's text and XML, our JSON.

mod figures;
mod page;
mod text;
pub mod view;
mod xml;

pub use figures::{Machine, ProcessorTopology};
pub use page::{csv, html, iops_chart, latency_chart, page, percentile_chart};
pub use text::text;
pub use xml::xml;

#[cfg(test)]
mod test;
