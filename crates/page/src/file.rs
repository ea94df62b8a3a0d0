//! A file of the page, and what a browser has to know of it.

/// A file, as it is and compressed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct File {
    /// Below the page's root, without a slash before it.
    pub(crate) path: &'static str,
    /// Another content has another one (RFC 9110 8.8.3 "`ETag`"), with its quotes.
    pub(crate) tag: &'static str,
    /// For whoever can unpack nothing.
    pub(crate) plain: &'static [u8],
    /// By Brotli, where that is smaller.
    pub(crate) br: Option<&'static [u8]>,
    /// By gzip, where that is smaller.
    pub(crate) gzip: Option<&'static [u8]>,
}

/// The folder of files whose names change with their content.
const HASHED: &str = "assets/";

impl File {
    /// Its media type.
    pub(crate) fn kind(&self) -> &'static str {
        match self.path.rsplit('.').next().unwrap_or_default() {
            "html" => "text/html; charset=utf-8",
            "js" => "text/javascript; charset=utf-8",
            "css" => "text/css; charset=utf-8",
            "svg" => "image/svg+xml",
            "woff2" => "font/woff2",
            "json" | "webmanifest" => "application/json",
            "png" => "image/png",
            "txt" => "text/plain; charset=utf-8",
            _ => "application/octet-stream",
        }
    }

    /// How long a browser may keep it without asking.
    pub(crate) fn caching(&self) -> &'static str {
        if self.path.starts_with(HASHED) {
            "public, max-age=31536000, immutable"
        } else {
            "no-cache"
        }
    }
}
