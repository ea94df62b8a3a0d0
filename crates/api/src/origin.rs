//! For whom a request is, and whose page it comes from.
//!
//! A browser that was made to believe that a stranger's name leads here (DNS rebinding) sends that
//! name as `Host`; one that runs a stranger's page sends that page as `Origin`.

use axum::http::request::Parts;
use axum::http::{HeaderValue, header};
use manifest::code::Code;
use manifest::problem::Problem;
use std::net::{IpAddr, Ipv6Addr};

/// The name without its port: `[::1]:80` is `::1`.
fn without_port(authority: &str) -> &str {
    if let Some(rest) = authority.strip_prefix('[') {
        return rest.split(']').next().unwrap_or_default();
    }
    authority.split(':').next().unwrap_or_default()
}

/// Refuses what is for another host, or comes from a page of another origin.
///
/// # Errors
/// Which of them it is.
pub(crate) fn check(request: &Parts, is_ours: impl Fn(&str) -> bool) -> Result<(), Problem> {
    let host = authority(request)?;
    let name = without_port(&host)
        .trim_end_matches('.')
        .to_ascii_lowercase();
    // A name is needed to rebind; an address leads where it leads.
    let is_address = name.parse::<IpAddr>().is_ok() || name.parse::<Ipv6Addr>().is_ok();
    if !is_address && name != "localhost" && !is_ours(&name) {
        let detail = format!("Host: {}", shown(&host));
        return Err(Problem::new(Code::ForeignHost, detail));
    }
    for origin in request.headers.get_all(header::ORIGIN) {
        let from = origin.to_str().ok().and_then(|it| it.split_once("://"));
        if from.is_none_or(|(_, from)| !from.eq_ignore_ascii_case(&host)) {
            let detail = format!(
                "Origin: {}",
                shown(&String::from_utf8_lossy(origin.as_bytes()))
            );
            return Err(Problem::new(Code::ForeignOrigin, detail));
        }
    }
    Ok(())
}

/// What the request says whom it is for: exactly one name.
fn authority(request: &Parts) -> Result<String, Problem> {
    let mut hosts = request.headers.get_all(header::HOST).iter();
    let (first, second) = (hosts.next(), hosts.next());
    let written = first.map(HeaderValue::to_str).transpose();
    let of_uri = request.uri.authority().map(|it| it.as_str());
    match (written, of_uri, second) {
        (Ok(Some(host)), None, None) => Ok(host.to_owned()),
        (Ok(None), Some(host), None) => Ok(host.to_owned()),
        (Ok(Some(host)), Some(same), None) if host.eq_ignore_ascii_case(same) => {
            Ok(host.to_owned())
        }
        _ => Err(Problem::new(
            Code::ForeignHost,
            "Host: none, or more than one",
        )),
    }
}

/// What a stranger wrote, as it may stand in an answer.
fn shown(text: &str) -> String {
    text.chars()
        .take(80)
        .flat_map(char::escape_default)
        .collect()
}

#[cfg(test)]
mod test {
    use super::*;
    use axum::http::Request;

    fn ask(uri: &str, headers: &[(&str, &str)]) -> Result<(), Code> {
        let mut request = Request::builder().uri(uri);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let (parts, ()) = request.body(()).unwrap().into_parts();
        check(&parts, |name| name == "san-a").map_err(|problem| problem.code)
    }

    #[test]
    fn a_foreign_host_is_refused_whatever_its_form() {
        for good in [
            "localhost",
            "LOCALHOST:1",
            "san-a",
            "san-a:8480",
            "San-A.",
            "127.0.0.1:8480",
            "10.0.0.1",
            "[::1]:8480",
            "[fe80::1]",
        ] {
            assert_eq!(ask("/", &[("host", good)]), Ok(()), "{good}");
        }
        for bad in [
            "",
            "evil.example",
            "san-a.evil.example",
            "san-a@evil.example",
            "127.0.0.1.evil.example",
            "localhost.evil.example",
            "[evil.example]",
            ":8480",
            "2130706433x",
            "xn--san-a",
        ] {
            assert_eq!(ask("/", &[("host", bad)]), Err(Code::ForeignHost), "{bad}");
        }
        assert_eq!(ask("/", &[]), Err(Code::ForeignHost));
        let two = [("host", "san-a"), ("host", "san-a")];
        assert_eq!(ask("/", &two), Err(Code::ForeignHost));
        // As HTTP/2 says it, and as a proxy is asked.
        assert_eq!(ask("https://san-a:1/x", &[]), Ok(()));
        assert_eq!(ask("https://evil.example/x", &[]), Err(Code::ForeignHost));
        let other = [("host", "san-a")];
        assert_eq!(
            ask("https://evil.example/x", &other),
            Err(Code::ForeignHost)
        );
    }

    #[test]
    fn a_page_of_another_origin_is_refused() {
        let from = |origin: &str| ask("/", &[("host", "san-a:8480"), ("origin", origin)]);
        assert_eq!(from("http://san-a:8480"), Ok(()));
        assert_eq!(
            from("https://SAN-A:8480"),
            Ok(()),
            "behind a proxy that does TLS"
        );
        for bad in [
            "null",
            "",
            "http://evil.example",
            "http://san-a",
            "http://san-a:8481",
            "san-a:8480",
            "http://san-a:8480.evil.example",
            "http://evil.example/san-a:8480",
        ] {
            assert_eq!(from(bad), Err(Code::ForeignOrigin), "{bad}");
        }
    }
}
