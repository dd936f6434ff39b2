//! The files that pages link to, inside the binary and named by their content, so that a browser
//! may keep them for ever and never sees an old one.

use std::sync::LazyLock;

use axum::extract::Path;
use axum::http::header;
use axum::response::{IntoResponse, Response};
use sha2::{Digest, Sha256};

use super::failure::Failure;
use crate::domain::key::hex;

/// One file, ready to be sent.
#[derive(Debug)]
pub struct Asset {
    /// Where it is found: `/static/desk-<hash>.css`.
    pub url: String,
    /// Its media type.
    pub content_type: &'static str,
    /// Its content.
    pub bytes: &'static [u8],
}

impl Asset {
    fn new(stem: &str, extension: &str, content_type: &'static str, bytes: &'static [u8]) -> Self {
        let digest = hex(&Sha256::digest(bytes)[..6]);
        Self { url: format!("/static/{stem}-{digest}.{extension}"), content_type, bytes }
    }
}

/// Written in parts, sent as one: each part is about one thing.
const CSS: &str = concat!(
    include_str!("../../static/css/tokens.css"),
    include_str!("../../static/css/base.css"),
    include_str!("../../static/css/shell.css"),
    include_str!("../../static/css/parts.css"),
    include_str!("../../static/css/handling.css"),
    include_str!("../../static/css/correct.css"),
    include_str!("../../static/css/tables.css"),
    include_str!("../../static/css/work.css"),
    include_str!("../../static/css/evidence.css"),
    include_str!("../../static/css/charts.css"),
    include_str!("../../static/css/bulk.css"),
    include_str!("../../static/css/factors.css"),
    include_str!("../../static/css/print.css"),
);

static ALL: LazyLock<[Asset; 4]> = LazyLock::new(|| {
    [
        Asset::new("desk", "css", "text/css; charset=utf-8", CSS.as_bytes()),
        Asset::new("desk", "js", "text/javascript; charset=utf-8", include_bytes!("../../static/desk.js")),
        Asset::new(
            "passkeys",
            "js",
            "text/javascript; charset=utf-8",
            include_bytes!("../../static/passkeys.js"),
        ),
        Asset::new("favicon", "svg", "image/svg+xml", include_bytes!("../../static/favicon.svg")),
    ]
});

/// Every file that pages link to.
pub fn all() -> &'static [Asset] {
    &*ALL
}

/// Address of the style sheet.
pub fn css() -> &'static str {
    &ALL[0].url
}

/// Address of the script.
pub fn js() -> &'static str {
    &ALL[1].url
}

/// Address of the script for passkeys, which only their pages load.
pub fn passkeys_js() -> &'static str {
    &ALL[2].url
}

/// Address of the icon in the browser's tab.
pub fn favicon() -> &'static str {
    &ALL[3].url
}

/// `GET /static/{name}`.
#[allow(clippy::unused_async, reason = "axum's handlers are asynchronous")]
pub async fn serve(Path(name): Path<String>) -> Response {
    let found = all().iter().find(|asset| asset.url.strip_prefix("/static/") == Some(name.as_str()));
    match found {
        Some(asset) => (
            [
                (header::CONTENT_TYPE, asset.content_type),
                (header::CACHE_CONTROL, "public, max-age=31536000, immutable"),
            ],
            asset.bytes,
        )
            .into_response(),
        None => Failure::NotFound.into_response(),
    }
}

#[cfg(test)]
mod tests {
    use axum::http::StatusCode;

    use super::*;

    #[tokio::test]
    async fn a_file_is_found_by_its_hashed_name_only() {
        let name = css().trim_start_matches("/static/").to_owned();
        let found = serve(Path(name)).await;
        assert_eq!(found.status(), StatusCode::OK);
        assert_eq!(found.headers()[header::CONTENT_TYPE], "text/css; charset=utf-8");
        assert!(found.headers()[header::CACHE_CONTROL].to_str().unwrap().contains("immutable"));
        for name in ["desk.css", "", "../Cargo.toml"] {
            assert_eq!(serve(Path(name.into())).await.status(), StatusCode::NOT_FOUND);
        }
    }

    #[test]
    fn the_script_stays_small_and_the_styles_call_nobody() {
        for (place, most) in [(1, 15 * 1024), (2, 2 * 1024)] {
            assert!(all()[place].bytes.len() <= most, "{} bytes", all()[place].bytes.len());
        }
        assert!(!CSS.contains("http") && !CSS.contains("@import") && !CSS.contains("url("));
    }
}
