//! Listening: sockets before anyone serves them.

use controller::Reached;
use manifest::code::Code;
use manifest::config::ApiAddress;
use manifest::problem::Problem;
use rustix::fs::{Gid, chown};
use std::ffi::OsString;
use std::fs::Permissions;
use std::io;
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};

/// Members of this group may open the unix socket, and do everything through it.
const GROUP: &str = "causeway";

/// Sockets that listen, before anyone serves them.
#[derive(Debug)]
pub struct Bound {
    pub(crate) sockets: Vec<Socket>,
    /// The addresses with real ports, as `--api` takes them.
    pub addresses: Vec<String>,
    /// Those that cannot be had yet, and why.
    pub(crate) away: Vec<(ApiAddress, String)>,
    pub(crate) reached: Reached,
    /// The group that may open unix sockets, where there is one.
    pub(crate) group: Option<u32>,
}

impl Bound {
    /// Where it can be reached, kept up to date while it is served.
    #[must_use]
    pub fn reached(&self) -> Reached {
        self.reached.clone()
    }
}

#[derive(Debug)]
pub(crate) enum Socket {
    Unix(UnixListener, PathBuf),
    Tcp(TcpListener),
    Https(TcpListener),
}

/// Listens at every address; unix sockets are for the user of this process alone.
///
/// # Errors
/// The address that cannot be had, and why.
pub fn bind(listen: &[ApiAddress]) -> Result<Bound, Problem> {
    let bound = listen_at(listen, None);
    match bound.away.first() {
        Some((address, why)) => {
            let detail = format!("{address}: {why}");
            Err(Problem::new(Code::ConfigEnvironment, detail))
        }
        None => Ok(bound),
    }
}

/// Listens where it can; a [`Server`](crate::Server) goes on trying the other addresses. Members of
/// the group `causeway`, where there is one, may open unix sockets.
#[must_use]
pub fn bind_what_can_be(listen: &[ApiAddress]) -> Bound {
    let groups = std::fs::read_to_string("/etc/group").unwrap_or_default();
    listen_at(listen, group_id(&groups, GROUP))
}

pub(crate) fn listen_at(listen: &[ApiAddress], group: Option<u32>) -> Bound {
    let mut bound = Bound {
        sockets: Vec::new(),
        addresses: Vec::new(),
        away: Vec::new(),
        reached: Reached::default(),
        group,
    };
    for address in listen {
        match bind_one(address, group) {
            Ok((socket, at)) => {
                bound.sockets.push(socket);
                bound.addresses.push(at);
            }
            Err(error) => bound.away.push((address.clone(), error.to_string())),
        }
    }
    bound.reached.set(&bound.addresses, &bound.away);
    bound
}

/// The number of a group, as group(5) has it.
fn group_id(groups: &str, name: &str) -> Option<u32> {
    groups.lines().find_map(|line| {
        let mut fields = line.split(':');
        (fields.next()? == name).then_some(())?;
        fields.nth(1)?.parse().ok()
    })
}

/// Listens at an address: the socket, and the address with its real port.
pub(crate) fn bind_one(address: &ApiAddress, group: Option<u32>) -> io::Result<(Socket, String)> {
    let tcp = |at| {
        let socket = TcpListener::bind(at)?;
        socket.set_nonblocking(true)?;
        let local = socket.local_addr()?;
        Ok::<_, io::Error>((socket, local))
    };
    match address {
        ApiAddress::Unix(path) => {
            let socket = bind_unix(path, group)?;
            Ok((Socket::Unix(socket, path.clone()), address.to_string()))
        }
        ApiAddress::Tcp(at) => {
            let (socket, local) = tcp(at)?;
            Ok((Socket::Tcp(socket), ApiAddress::Tcp(local).to_string()))
        }
        ApiAddress::Https(at) => {
            let (socket, local) = tcp(at)?;
            Ok((Socket::Https(socket), ApiAddress::Https(local).to_string()))
        }
    }
}

/// A socket that nobody else can open at any moment: it gets its mode under another name first.
fn bind_unix(path: &Path, group: Option<u32>) -> io::Result<UnixListener> {
    if UnixStream::connect(path).is_ok() {
        return Err(io::Error::new(
            io::ErrorKind::AddrInUse,
            "another process serves this socket",
        ));
    }
    if let Some(parent) = path
        .parent()
        .filter(|parent| !parent.as_os_str().is_empty())
    {
        std::fs::create_dir_all(parent)?;
    }
    let mut name = path.file_name().map_or_else(OsString::new, OsString::from);
    name.push(".new");
    let temporary = path.with_file_name(name);
    match std::fs::remove_file(&temporary) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        done => done?,
    }
    let socket = UnixListener::bind(&temporary)?;
    std::fs::set_permissions(&temporary, Permissions::from_mode(0o600))?;
    if let Some(group) = group {
        // A daemon that is no member of the group cannot give the socket to it.
        match chown(&temporary, None, Some(Gid::from_raw(group))) {
            Ok(()) => std::fs::set_permissions(&temporary, Permissions::from_mode(0o660))?,
            Err(error) => tracing::warn!(
                "{}: it stays closed to the group {GROUP}: {error}",
                path.display()
            ),
        }
    }
    std::fs::rename(&temporary, path)?;
    socket.set_nonblocking(true)?;
    Ok(socket)
}

#[cfg(test)]
mod test {
    use super::*;
    use std::os::unix::fs::MetadataExt;

    #[test]
    fn a_group_is_found_by_its_whole_name() {
        let groups = "root:x:0:\ncauseway-old:x:7:\nbroken\ncauseway:x:999:a,b\n";
        assert_eq!(group_id(groups, GROUP), Some(999));
        assert_eq!(group_id("root:x:0:\n", GROUP), None);
        assert_eq!(group_id("causeway:x:many:\n", GROUP), None);
    }

    #[test]
    fn a_unix_socket_is_its_owners_but_where_the_group_is_there() {
        let dir = std::env::temp_dir().join(format!("causeway-listen-{}", std::process::id()));
        std::fs::create_dir_all(&dir).unwrap();
        let own = rustix::process::getegid().as_raw();
        for (group, mode) in [(None, 0o600), (Some(own), 0o660)] {
            let path = dir.join(format!("{mode:o}.sock"));
            let bound = listen_at(&[ApiAddress::Unix(path.clone())], group);
            assert_eq!(bound.away, []);
            let found = std::fs::metadata(&path).unwrap();
            assert_eq!(found.permissions().mode() & 0o777, mode);
            assert_eq!(found.gid(), own);
        }
        std::fs::remove_dir_all(&dir).unwrap();
    }
}
