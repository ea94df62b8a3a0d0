//! The certificate that the daemon makes for itself: made where there is none, and made anew where
//! it lacks a name of the node or is near its end.
//!
//! **Failure model.** Anew it gets another certificate for the same key: one file is replaced as a
//! whole, and no crash leaves two that do not belong together. What is no certificate of the
//! daemon's is never replaced.

use crate::addresses::addresses;
use crate::outside::now;
use controller::{Handle, StateFiles};
use manifest::code::Code;
use manifest::config::{ApiAddress, CertificateFiles, Config};
use manifest::problem::Problem;
use manifest::time::{parse, rfc3339};
use rcgen::{CertificateParams, DnType, ExtendedKeyUsagePurpose, KeyPair, date_time_ymd};
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;
use units::WallClock;
use x509::{Facts, facts};

/// The certificate of our own, and its key, in the state directory.
pub const CERTIFICATE_FILE: &str = "api-cert.pem";
pub(crate) const KEY_FILE: &str = "api-key.pem";

const DAY: Duration = Duration::from_secs(86_400);

/// How long one is good, from the first day of the month in which it was made. Apple's clients take
/// none that is good for more than 825 days.
const LIFE: Duration = DAY.saturating_mul(824);

/// So long before its end it is made anew.
const EARLY: Duration = DAY.saturating_mul(30);

/// By this organization name the daemon knows what it has made.
const OURS: &str = "Causeway";

/// Builds that gave no organization made it good for so many years.
const YEARS_BEFORE: u16 = 10;

/// Where the certificate of our own comes from.
pub(crate) struct OwnCertificate {
    files: StateFiles,
    handle: Handle,
    live: watch::Receiver<Arc<Config>>,
    /// Names of the node beside those of the settings.
    names: Vec<String>,
}

impl OwnCertificate {
    pub(crate) fn new(
        files: StateFiles,
        handle: Handle,
        live: watch::Receiver<Arc<Config>>,
        names: Vec<String>,
    ) -> Self {
        Self {
            files,
            handle,
            live,
            names,
        }
    }

    /// Its files.
    pub(crate) fn paths(&self) -> CertificateFiles {
        CertificateFiles {
            cert: self.files.path(CERTIFICATE_FILE),
            key: self.files.path(KEY_FILE),
        }
    }

    /// Makes it where there is none.
    ///
    /// # Errors
    /// It cannot be made.
    pub(crate) async fn make_first(&self) -> Result<(), Problem> {
        let there = self.files.read(CERTIFICATE_FILE).await?.is_some();
        if there && self.files.read(KEY_FILE).await?.is_some() {
            return Ok(());
        }
        let key = KeyPair::generate().map_err(|error| wrong(&error))?;
        // The certificate last: without it both are made anew.
        let pem = key.serialize_pem().into_bytes();
        self.files.write(KEY_FILE, pem).await?;
        self.write(&key).await
    }

    /// Makes it anew for the same key.
    ///
    /// # Errors
    /// It cannot be made; what was there is there.
    pub(crate) async fn renew(&self) -> Result<(), Problem> {
        let key = self.files.read(KEY_FILE).await?.unwrap_or_default();
        let key = KeyPair::from_pem(&String::from_utf8_lossy(&key));
        self.write(&key.map_err(|error| wrong(&error))?).await
    }

    async fn write(&self, key: &KeyPair) -> Result<(), Problem> {
        let names = self.required(&addresses(&self.handle).await?, |_| true);
        let node = self.live.borrow().node_name.clone();
        let made = make(&node, names, key, now().wall).map_err(|error| wrong(&error))?;
        self.files.write(CERTIFICATE_FILE, made.into_bytes()).await
    }

    /// Why the one that is served is to be made anew, when the daemon starts. Of addresses those of
    /// IPv4 count: a machine gives itself others of IPv6 each day, and none of these is worth that
    /// every client has to trust a new certificate.
    ///
    /// # Errors
    /// Core 0 is gone.
    pub(crate) async fn reason_at_start(&self, served: &[u8]) -> Result<Option<String>, Problem> {
        let all = addresses(&self.handle).await?;
        Ok(reason(
            served,
            &self.required(&all, IpAddr::is_ipv4),
            now().wall,
        ))
    }

    /// Why the one that is served is to be made anew, while the daemon runs.
    pub(crate) fn reason_now(&self, served: &[u8]) -> Option<String> {
        reason(served, &self.required(&[], |_| false), now().wall)
    }

    /// The names of the node, the addresses that it listens at, and of these all that count.
    fn required(&self, addresses: &[String], counts: impl Fn(&IpAddr) -> bool) -> Vec<String> {
        let live = self.live.borrow();
        let mut all = [&self.names[..], &live.api_settings.names].concat();
        let listens = live.api.iter().filter_map(|at| match at {
            ApiAddress::Https(at) => Some(at.ip()).filter(|it| !it.is_unspecified()),
            ApiAddress::Unix(_) | ApiAddress::Tcp(_) => None,
        });
        all.extend(listens.map(|it| it.to_string()));
        let known = addresses.iter();
        all.extend(
            known
                .filter(|it| it.parse().is_ok_and(|it| counts(&it)))
                .cloned(),
        );
        // As the certificate will have them.
        let mut all: Vec<String> = all.iter().map(|it| canonical(it)).collect();
        all.sort();
        all.dedup();
        all
    }
}

/// An address in its shortest form, a name as it is.
fn canonical(name: &str) -> String {
    let address = name.parse::<IpAddr>();
    address.map_or_else(|_| name.to_owned(), |it| it.to_string())
}

fn wrong(error: &rcgen::Error) -> Problem {
    Problem::new(Code::Internal, format!("a certificate: {error}"))
}

/// The daemon has made it, or an earlier build.
fn is_ours(it: &Facts) -> bool {
    it.is_self_signed && (it.organization.as_deref() == Some(OURS) || is_of_a_build_before(it))
}

/// Builds that gave no organization gave the name of the node alone, and [`YEARS_BEFORE`]: from
/// the first day of a month until a day of that month, both from midnight. Nothing that others
/// make by themselves is so: it begins in the moment in which it is made, or lasts so many days.
fn is_of_a_build_before(it: &Facts) -> bool {
    let (begins, ends) = (&it.begins, &it.ends);
    let year = begins.get(..4).and_then(|year| year.parse::<u16>().ok());
    let month = begins.get(4..8);
    let (Some(year), Some(month)) = (year, month) else {
        return false;
    };
    let last = format!("{:04}{month}", year.saturating_add(YEARS_BEFORE));
    it.common_name_alone.is_some()
        && begins.ends_with("-01T00:00:00.000Z")
        && ends.starts_with(&last)
        && ends.ends_with("T00:00:00.000Z")
}

/// Why a certificate is to be made anew; `None`: it will do, or the daemon has not made it.
fn reason(served: &[u8], required: &[String], now: WallClock) -> Option<String> {
    let facts = facts(served).filter(is_ours)?;
    let Facts { names, ends, .. } = facts;
    let early = u64::try_from(EARLY.as_nanos()).unwrap_or(u64::MAX);
    if parse(&ends)?.0 <= now.0.saturating_add(early) {
        return Some(format!("the one before ends at {ends}"));
    }
    let lacks = required.iter().filter(|it| !names.contains(it));
    let lacks: Vec<&str> = lacks.map(String::as_str).collect();
    let all = lacks.join(", ");
    (!lacks.is_empty()).then(|| format!("the one before was not for {all}"))
}

/// A certificate as PEM, good from the first day of this month.
fn make(
    node: &str,
    names: Vec<String>,
    key: &KeyPair,
    now: WallClock,
) -> Result<String, rcgen::Error> {
    let mut parameters = CertificateParams::new(names)?;
    let name = &mut parameters.distinguished_name;
    name.push(DnType::OrganizationName, OURS);
    name.push(DnType::CommonName, node);
    parameters.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
    let now = rfc3339(now);
    let mut date = now.split('-').map(|part| part.parse::<u16>().ok());
    let (year, month) = (date.next().flatten(), date.next().flatten());
    let month = month.and_then(|it| u8::try_from(it).ok()).unwrap_or(1);
    // Not after today's, for clients whose clock is late.
    parameters.not_before = date_time_ymd(i32::from(year.unwrap_or(2026)), month, 1);
    parameters.not_after = parameters.not_before + LIFE;
    Ok(parameters.self_signed(key)?.pem())
}

#[cfg(test)]
mod test {
    use super::*;
    use rustls::pki_types::CertificateDer;
    use rustls::pki_types::pem::PemObject;

    fn names(all: &[&str]) -> Vec<String> {
        all.iter().map(|it| (*it).to_owned()).collect()
    }

    fn at(text: &str) -> WallClock {
        parse(text).unwrap()
    }

    /// One that was made at the end of a month.
    fn made(all: &[&str]) -> Vec<u8> {
        let key = KeyPair::generate().unwrap();
        let now = at("2026-11-30T23:59:59.000Z");
        let pem = make("San-A", names(all), &key, now).unwrap();
        let der = CertificateDer::from_pem_slice(pem.as_bytes()).unwrap();
        der.to_vec()
    }

    #[test]
    fn it_is_good_for_as_long_as_any_client_takes_and_from_before_it_was_made() {
        let facts = facts(&made(&["san-a"])).unwrap();
        let (begins, ends) = (at(&facts.begins), at(&facts.ends));
        assert_eq!(facts.begins, "2026-11-01T00:00:00.000Z");
        let days = (ends.0 - begins.0) / 1_000_000_000 / 86_400;
        assert!((790..=825).contains(&days), "{days}");
    }

    #[test]
    fn an_address_is_known_again_however_it_was_written() {
        let written = ["2001:0db8:0:0::7", "192.0.2.7", "san-a"];
        let own = made(&written);
        let required = written.map(canonical).to_vec();
        let now = at("2026-12-01T00:00:00.000Z");
        assert_eq!(reason(&own, &required, now), None);
    }

    #[test]
    fn one_is_made_anew_that_lacks_a_name_or_ends_soon_and_no_other() {
        let own = made(&["san-a", "192.0.2.7", "2001:db8::7"]);
        let now = at("2026-12-01T00:00:00.000Z");
        let all = names(&["192.0.2.7", "2001:db8::7", "san-a"]);
        assert_eq!(reason(&own, &all, now), None);
        assert_eq!(reason(&own, &all[..1], now), None, "more names do no harm");
        let more = names(&["192.0.2.8", "san-a", "san-b"]);
        let why = reason(&own, &more, now).unwrap();
        assert!(why.ends_with("was not for 192.0.2.8, san-b"), "{why}");
        let late = [
            ("2029-01-02T00:00:00.000Z", false),
            ("2029-01-03T00:00:00.000Z", true),
        ];
        for (when, is_late) in late {
            let why = reason(&own, &all, at(when));
            assert_eq!(why.is_some(), is_late, "{when}: {why:?}");
        }
        // What somebody else made stays, whatever it lacks.
        let other = rcgen::generate_simple_self_signed(names(&["other"])).unwrap();
        assert_eq!(reason(other.cert.der(), &all, now), None);
        assert_eq!(reason(b"nothing", &all, now), None);
    }

    /// From when until when a certificate is good.
    type Good = [(i32, u8, u8); 2];

    /// Parts of a name.
    type Subject<'a> = &'a [(DnType, &'a str)];

    /// One for `san-a` with these parts of its subject.
    fn made_so(subject: Subject<'_>, good: Good) -> Vec<u8> {
        let mut parameters = CertificateParams::new(names(&["san-a"])).unwrap();
        parameters.distinguished_name = rcgen::DistinguishedName::new();
        for (kind, text) in subject {
            parameters
                .distinguished_name
                .push(kind.clone(), (*text).to_owned());
        }
        let [from, until] = good.map(|(year, month, day)| date_time_ymd(year, month, day));
        (parameters.not_before, parameters.not_after) = (from, until);
        let key = KeyPair::generate().unwrap();
        parameters.self_signed(&key).unwrap().der().to_vec()
    }

    #[test]
    fn one_of_a_build_without_the_mark_is_made_anew_and_none_that_is_only_like_it() {
        let (name, now) = (DnType::CommonName, at("2026-12-01T00:00:00.000Z"));
        let ten_years = [(2026, 11, 1), (2036, 11, 26)];
        let lacks = |it: &[u8]| reason(it, &names(&["san-b"]), now);
        let before = made_so(&[(name.clone(), "San-A")], ten_years);
        let why = lacks(&before).expect("a build before has made it");
        assert!(why.ends_with("was not for san-b"), "{why}");
        assert_eq!(reason(&before, &names(&["san-a"]), now), None);
        let late = at("2036-10-27T00:00:00.000Z");
        assert!(reason(&before, &names(&["san-a"]), late).is_some());

        let alone = &[(name.clone(), "San-A")];
        let more = &[(name.clone(), "San-A"), (DnType::CountryName, "DE")];
        let country = &[(DnType::CountryName, "DE")];
        let others: [(&str, Subject<'_>, Good); 6] = [
            ("another part of a name", more, ten_years),
            ("another part alone", country, ten_years),
            (
                "not from the first day",
                alone,
                [(2026, 11, 2), (2036, 11, 26)],
            ),
            ("so many days", alone, [(2026, 11, 1), (2036, 10, 29)]),
            ("nine years", alone, [(2026, 11, 1), (2035, 11, 1)]),
            ("for ever", alone, [(1975, 1, 1), (4096, 1, 1)]),
        ];
        for (what, subject, good) in others {
            assert_eq!(lacks(&made_so(subject, good)), None, "{what}");
        }
    }

    #[test]
    fn what_another_authority_has_signed_is_never_made_anew() {
        let mut of = CertificateParams::new(Vec::<String>::new()).unwrap();
        of.distinguished_name.push(DnType::CommonName, "authority");
        let authority = rcgen::Issuer::new(of, KeyPair::generate().unwrap());
        let mut parameters = CertificateParams::new(names(&["san-a"])).unwrap();
        let subject = &mut parameters.distinguished_name;
        subject.push(DnType::CommonName, "San-A");
        parameters.not_before = date_time_ymd(2026, 11, 1);
        parameters.not_after = date_time_ymd(2036, 11, 26);
        let signed = |parameters: &CertificateParams| {
            let key = KeyPair::generate().unwrap();
            let made = parameters.signed_by(&key, &authority).unwrap();
            let now = at("2026-12-01T00:00:00.000Z");
            reason(made.der(), &names(&["san-b"]), now)
        };
        assert_eq!(signed(&parameters), None);
        let subject = &mut parameters.distinguished_name;
        subject.push(DnType::OrganizationName, OURS);
        assert_eq!(signed(&parameters), None);
    }
}
