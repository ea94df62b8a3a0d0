//! Where a name leads to, and which addresses are connected to.

use crate::{CONNECT_TIME_MAX, failure};
use alerts::{Failure, refused_address};
use std::net::SocketAddr;
use tokio::net::{TcpStream, lookup_host};
use tokio::time::timeout;

/// The addresses of a host that may be connected to.
pub(crate) async fn resolve(host: &str, port: u16) -> Result<Vec<SocketAddr>, Failure> {
    let found = timeout(CONNECT_TIME_MAX, lookup_host((host, port))).await;
    let found = match found {
        Ok(Ok(found)) => found.collect::<Vec<SocketAddr>>(),
        Ok(Err(error)) => return Err(failure(&format!("the name {host}"), &error)),
        Err(_) => return Err(failure(&format!("the name {host}"), &"no answer in time")),
    };
    let mut why = "it leads to no address";
    let mut allowed = Vec::new();
    for address in found {
        match refused_address(address.ip()) {
            Some(reason) => why = reason,
            None => allowed.push(address),
        }
    }
    if allowed.is_empty() {
        return Err(failure(&format!("{host} is not connected to"), &why));
    }
    Ok(allowed)
}

/// A connection to the first address that has one.
pub(crate) async fn connect(host: &str, port: u16) -> Result<TcpStream, Failure> {
    let mut last = failure(host, &"no address");
    for address in resolve(host, port).await? {
        match timeout(CONNECT_TIME_MAX, TcpStream::connect(address)).await {
            Ok(Ok(stream)) => return Ok(stream),
            Ok(Err(error)) => last = failure(&address.to_string(), &error),
            Err(_) => last = failure(&address.to_string(), &"no connection in time"),
        }
    }
    Err(last)
}
