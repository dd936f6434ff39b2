//! Nothing that was typed is lost: where a form cannot be done, its words come back with the answer.

use axum::body::{Body, to_bytes};
use axum::extract::Request;
use axum::http::{Method, StatusCode};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};

use super::failure::Failure;
use super::inbound::slow;
use super::page::render_as;
use super::pages::error::ErrorPage;
use crate::domain::words;

/// The largest form that is read, in bytes.
pub const MOST_FORM: usize = 256 * 1024;

/// The fields into which people write. A payload's fields begin with `f/`.
const WRITTEN: [&str; 7] = ["name", "reason", "note", "word", "reference", "json", "key"];

/// Keeps a form's words until its answer is known, and hands them back with one that refuses it.
pub async fn stays(request: Request, next: Next) -> Response {
    if request.method() != Method::POST {
        return next.run(request).await;
    }
    let (parts, body) = request.into_parts();
    let form = match to_bytes(body, MOST_FORM).await {
        Ok(form) => form,
        Err(error) if slow::came_too_slowly(&error) => {
            return Failure::BadForm(StatusCode::REQUEST_TIMEOUT).into_response();
        }
        Err(_) => return Failure::BadForm(StatusCode::PAYLOAD_TOO_LARGE).into_response(),
    };
    let mut answer = next.run(Request::from_parts(parts, Body::from(form.clone()))).await;
    let Some(mut page) = answer.extensions_mut().remove::<ErrorPage>() else { return answer };
    page.typed = written(url::form_urlencoded::parse(&form));
    if page.typed.is_empty() {
        return answer;
    }
    render_as(StatusCode::from_u16(page.status).unwrap_or(answer.status()), &page)
}

/// What a person wrote into a form: what its field is called, and the text.
pub fn written<N: AsRef<str>, T: AsRef<str>>(
    form: impl IntoIterator<Item = (N, T)>,
) -> Vec<(String, String)> {
    let field = |(name, text): (N, T)| {
        let (name, text) = (name.as_ref(), text.as_ref());
        let label = match name.strip_prefix("f/") {
            Some(place) => place.to_owned(),
            None if WRITTEN.contains(&name) => words::capitalised(name),
            None => return None,
        };
        (!text.trim().is_empty()).then(|| (label, text.to_owned()))
    };
    form.into_iter().filter_map(field).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_a_person_wrote_comes_back() {
        let form =
            b"csrf=c&action_id=a&password=p&old=o&reason=the+CRM%0Ais+back&f/order_id=7&note=+&step=confirm";
        let pair = |label: &str, text: &str| (label.to_owned(), text.to_owned());
        let written = written(url::form_urlencoded::parse(form));
        assert_eq!(written, [pair("Reason", "the CRM\nis back"), pair("order_id", "7")]);
    }
}
