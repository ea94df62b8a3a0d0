//! `certificate`: what https is served with.

use crate::answer::Answer;
use crate::auth::Gate;
use crate::describe::Paths;
use crate::tls::Origin;
use axum::extract::Extension;
use schemars::JsonSchema;
use serde::Serialize;
use std::sync::Arc;
use x509::Facts;

pub(super) fn paths(paths: Paths) -> Paths {
    paths.get(
        "/api/v1/certificate",
        "what https is served with: whose it is, and until when it is good",
        certificate,
    )
}

/// What https is served with. Where no address of the API begins with `https://`, only `https` is
/// there.
#[derive(Default, Serialize, JsonSchema)]
struct CertificateView {
    /// An address of the API begins with `https://`.
    https: bool,
    /// Who made it.
    #[serde(skip_serializing_if = "Option::is_none")]
    origin: Option<Origin>,
    /// Its file.
    #[serde(skip_serializing_if = "Option::is_none")]
    file: Option<String>,
    /// SHA-256 of it, as openssl(1) shows it.
    #[serde(skip_serializing_if = "Option::is_none")]
    fingerprint: Option<String>,
    /// Names and addresses that it is for.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    names: Vec<String>,
    /// The common name of whoever signed it.
    #[serde(skip_serializing_if = "Option::is_none")]
    issuer: Option<String>,
    /// From when it is good (RFC 3339).
    #[serde(skip_serializing_if = "Option::is_none")]
    begins: Option<String>,
    /// Until when it is good (RFC 3339).
    #[serde(skip_serializing_if = "Option::is_none")]
    ends: Option<String>,
    /// Why what stands in the files now is not used; the one before is.
    #[serde(skip_serializing_if = "Option::is_none")]
    problem: Option<String>,
}

async fn certificate(Extension(gate): Extension<Arc<Gate>>) -> Answer<CertificateView> {
    let Some(served) = &gate.certificate else {
        return Answer(Ok(CertificateView::default()));
    };
    let Facts {
        names,
        issuer,
        begins,
        ends,
        ..
    } = served.facts().unwrap_or_default();
    let there = |text: String| (!text.is_empty()).then_some(text);
    Answer(Ok(CertificateView {
        https: true,
        origin: Some(served.origin()),
        file: Some(served.file().display().to_string()),
        fingerprint: Some(served.fingerprint()),
        names,
        issuer,
        begins: there(begins),
        ends: there(ends),
        problem: served.problem(),
    }))
}
