//! Answers that are whole and wrong.

use serde_json::json;

use super::http::{Received, Reply};

/// A success that nobody carried out.
pub(super) fn success_without_effect() -> Reply {
    Reply::json(201, &json!({"id": "REF-0", "status": "created"}))
}

/// The same answer with a filler, at least `length` bytes long.
pub(super) fn huge(reply: Reply, length: usize) -> Reply {
    let mut body = b"{\"filler\":\"".to_vec();
    body.resize(body.len() + length, b'x');
    body.extend(b"\",\"answer\":");
    body.extend(&reply.body);
    body.push(b'}');
    Reply { body, ..reply }
}

pub(super) fn redirect(request: &Received) -> Reply {
    let location = ("location".to_owned(), request.path.clone());
    Reply { code: 307, headers: vec![location], body: Vec::new() }
}

/// Everything a page, a terminal, a log or a spreadsheet could trip over.
pub(super) fn hostile() -> Reply {
    let mut body = String::from(
        "<script>alert('answer')</script><img src=x onerror=alert(1)>\u{202e}txet desrever\u{202c}\n\
         \u{1b}[31mred\u{1b}[2J \0 NUL \u{7} =cmd|' /C calc'!A0 {{ 7 * 7 }} {% raw %} ';DROP TABLE operations;--\n",
    );
    body.push_str(&"endless ".repeat(100_000 / 8));
    Reply {
        code: 422,
        headers: vec![
            ("content-type".into(), "text/html".into()),
            ("x-note".into(), "<script>alert('header')</script>".into()),
        ],
        body: body.into_bytes(),
    }
}

pub(super) fn wrong_json() -> Reply {
    Reply::json(200, &json!([{"id": {"nested": [null, 1.0e308]}}, "ok", false]))
}
