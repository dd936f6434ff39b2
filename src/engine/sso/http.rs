//! How the provider is asked: through the address guard, briefly, and following nobody elsewhere.

use std::pin::Pin;
use std::time::Duration;

use openidconnect::{AsyncHttpClient, HttpRequest, HttpResponse};
use reqwest::{Body, Method, Request};
use url::Url;

use crate::engine::guard::{self, AddressError, Client, Terms};

/// For a whole exchange.
const TIMEOUT: Duration = Duration::from_secs(10);
const CONNECT_TIMEOUT: Duration = Duration::from_secs(3);
/// What a provider says of itself takes some kilobytes, its keys included.
const MOST: usize = 1024 * 1024;

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
pub(super) enum HttpError {
    /// The address is one that may not be asked.
    #[error(transparent)]
    Address(#[from] AddressError),
    /// No answer came, or half of one.
    #[error("no answer")]
    Exchange(#[from] reqwest::Error),
    /// Nothing that a provider says is that long.
    #[error("the answer has more than {MOST} bytes")]
    TooLong,
}

/// The way to the provider.
pub(super) struct Http(Client);

impl Http {
    /// `allow_private`: loopback, private networks and plain http will do. Sign-ins are few: a
    /// connection of its own for each request keeps nothing open meanwhile.
    pub(super) fn new(allow_private: bool) -> reqwest::Result<Self> {
        let terms = Terms { allow_private, connect_timeout: CONNECT_TIMEOUT, timeout: TIMEOUT, reuse: false };
        guard::client(terms).map(Self)
    }

    /// Whether an address that the provider names may be used.
    pub(super) fn permits(&self, url: &Url) -> Result<(), AddressError> {
        self.0.request(Method::GET, url.clone()).map(drop)
    }

    async fn exchange(&self, request: HttpRequest) -> Result<HttpResponse, HttpError> {
        let request = Request::try_from(request)?;
        let mut call = self.0.request(request.method().clone(), request.url().clone())?;
        call = call.headers(request.headers().clone());
        if let Some(body) = request.body().and_then(Body::as_bytes) {
            call = call.body(body.to_vec());
        }
        let mut found = call.send().await?;
        let mut body = Vec::new();
        while let Some(part) = found.chunk().await? {
            if body.len() + part.len() > MOST {
                return Err(HttpError::TooLong);
            }
            body.extend_from_slice(&part);
        }
        let mut answer = HttpResponse::new(body);
        *answer.status_mut() = found.status();
        answer.headers_mut().clone_from(found.headers());
        Ok(answer)
    }
}

impl<'c> AsyncHttpClient<'c> for Http {
    type Error = HttpError;
    type Future = Pin<Box<dyn Future<Output = Result<HttpResponse, HttpError>> + Send + 'c>>;

    fn call(&'c self, request: HttpRequest) -> Self::Future {
        Box::pin(self.exchange(request))
    }
}
