//! Paths that are served and described in one go: the document of the API is made from the types
//! that handlers take and answer, so that neither can be without the other.
//!
//! **Contract.** A path gets into the router through [`Paths`] only. Each argument of its handler
//! is a [`Part`] and what it answers is a [`Reply`]; each says what it adds to the [`Operation`].

mod document;
mod examples;
mod operation;
mod schemas;
mod takes;

pub(super) use document::document;
pub(super) use operation::{Operation, PROBES, Parameter};
pub(super) use schemas::Schemas;

use axum::Router;
use axum::handler::Handler;
use axum::http::Method;
use axum::middleware::from_fn_with_state;
use axum::routing::{MethodFilter, on};
use controller::Handle;
use manifest::code::Code;
use takes::Takes;

/// A part of a request that a handler takes.
pub(super) trait Part {
    /// What it adds to the description.
    fn describe(operation: &mut Operation, schemas: &mut Schemas);
}

/// The way to the node is no part of the request. The node may be stopping.
impl Part for axum::extract::State<Handle> {
    fn describe(operation: &mut Operation, _: &mut Schemas) {
        operation.fails(&[Code::Stopping]);
    }
}

/// What a handler answers.
pub(super) trait Reply {
    /// What it adds to the description.
    fn describe(operation: &mut Operation, schemas: &mut Schemas);
}

/// A handler whose arguments are parts and whose answer is a reply; `T` as axum has it.
pub(super) trait Described<T> {
    /// All that its types say.
    fn describe(operation: &mut Operation, schemas: &mut Schemas);
}

macro_rules! described {
    ($($part:ident),*) => {
        impl<F, Fut, R, M, $($part),*> Described<(M, $($part,)*)> for F
        where
            F: Fn($($part),*) -> Fut,
            Fut: Future<Output = R>,
            R: Reply,
            $($part: Part),*
        {
            fn describe(operation: &mut Operation, schemas: &mut Schemas) {
                $($part::describe(operation, schemas);)*
                R::describe(operation, schemas);
            }
        }
    };
}

impl<F, Fut, R> Described<((),)> for F
where
    F: Fn() -> Fut,
    Fut: Future<Output = R>,
    R: Reply,
{
    fn describe(operation: &mut Operation, schemas: &mut Schemas) {
        R::describe(operation, schemas);
    }
}

described!(A);
described!(A, B);
described!(A, B, C);
described!(A, B, C, D);
described!(A, B, C, D, E);

/// Paths with their handlers and descriptions.
#[derive(Default)]
pub(super) struct Paths {
    router: Router<Handle>,
    operations: Vec<Operation>,
    schemas: Schemas,
}

macro_rules! methods {
    ($($name:ident = $method:ident),*) => {
        $(
            #[doc = concat!("Serves ", stringify!($method), " of a path; `what`: what it does, in a few words.")]
            pub(super) fn $name<H, T>(self, path: &'static str, what: &'static str, handler: H) -> Self
            where
                H: Handler<T, Handle> + Described<T>,
                T: 'static,
            {
                self.serve(&Method::$method, MethodFilter::$method, (path, what), handler)
            }
        )*
    };
}

impl Paths {
    methods!(
        get = GET,
        post = POST,
        put = PUT,
        patch = PATCH,
        delete = DELETE
    );

    fn serve<H, T>(
        mut self,
        method: &Method,
        filter: MethodFilter,
        (path, what): (&'static str, &'static str),
        handler: H,
    ) -> Self
    where
        H: Handler<T, Handle> + Described<T>,
        T: 'static,
    {
        let name = std::any::type_name::<H>();
        let name = name.rsplit("::").next().unwrap_or(name);
        let mut operation = Operation::new(method, path, what, name);
        H::describe(&mut operation, &mut self.schemas);
        let mut route = on(filter, handler);
        if !crate::access::reads(method) {
            operation.fails(&[Code::BadRequest]);
            let takes = Takes::of(&operation);
            route = route.route_layer(from_fn_with_state(takes, takes::check));
        }
        self.operations.push(operation);
        self.router = self.router.route(path, route);
        self
    }

    /// The path that was served last may answer these codes as well.
    pub(super) fn or(mut self, codes: &[Code]) -> Self {
        let last = self.operations.last_mut().expect("behind a path");
        last.codes.extend(codes);
        self
    }

    /// With the paths of `more` as well, which never answer these codes, although what they take
    /// may elsewhere.
    pub(super) fn but(mut self, codes: &[Code], more: impl FnOnce(Self) -> Self) -> Self {
        let first = self.operations.len();
        self = more(self);
        for operation in self.operations.iter_mut().skip(first) {
            operation.codes.retain(|code| !codes.contains(code));
        }
        self
    }

    /// With the paths of `more` as well, which make no storage: none is answered with a job.
    pub(super) fn at_once(mut self, more: impl FnOnce(Self) -> Self) -> Self {
        let first = self.operations.len();
        self = more(self);
        for operation in self.operations.iter_mut().skip(first) {
            operation.begins_nothing();
        }
        self
    }

    /// With the paths of `more` as well.
    pub(super) fn with(self, more: impl FnOnce(Self) -> Self) -> Self {
        more(self)
    }

    /// What serves them.
    pub(super) fn into_router(self) -> Router<Handle> {
        self.router
    }
}
