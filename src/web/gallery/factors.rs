//! What is shown beside a password.

use super::samples::{Words, ago, layout};
use crate::web::page::{Layout, Section};
use crate::web::pages::confirm::{ConfirmPage, Ways};
use crate::web::pages::factors::{AppPage, CodesPage, FactorsPage, PasskeyView, Picture};
use crate::web::pages::passkey::PasskeyPage;
use crate::web::pages::second::SecondPage;
use crate::web::view::{Field, Reference, When};

pub(super) fn second(w: &Words) -> SecondPage {
    SecondPage {
        layout: Layout::outside("Second factor", ""),
        name: w.t("anna.k"),
        code: Some(Field::default()),
        passkey: true,
        carried: Vec::new(),
        problem: w.some("That code is not right, or was used before."),
    }
}

pub(super) fn factors(w: &Words, some: bool) -> FactorsPage {
    let key = |name: &str, used: Option<When>| PasskeyView {
        name: w.t(name),
        added: ago(86_400 * 40),
        used,
        remove: "/account/second-factor/passkeys/01987c3e/remove".into(),
    };
    FactorsPage {
        layout: layout(w, "Second factor", Section::Account),
        demanded: !some,
        app: some.then(|| ago(86_400)),
        waiting: !some,
        passkeys: if some { vec![key("work laptop", Some(ago(600))), key("key ring", None)] } else { vec![] },
        no_passkeys: (!some).then(|| w.t("Passkeys need https, and the desk is reached over plain http.")),
        name: if some {
            Field::wrong(w.t("x"), w.t("A passkey\u{2019}s name has 1 to 64 characters."))
        } else {
            Field::default()
        },
        codes: some.then_some(9),
        codes_made: 10,
    }
}

pub(super) fn app(w: &Words) -> AppPage {
    AppPage {
        layout: layout(w, "Set up an authenticator app", Section::Account),
        picture: Picture::of(
            "otpauth://totp/Dead%20Letter%20Office:anna.k?secret=GEZDGNBVGY3TQOJQGEZDGNBVGY3TQOJQ",
        ),
        secret: "GEZD GNBV GY3T QOJQ GEZD GNBV GY3T QOJQ".into(),
        code: Field::wrong("", w.t("That is not the code that stands now.")),
    }
}

pub(super) fn codes(w: &Words) -> CodesPage {
    CodesPage {
        layout: layout(w, "Recovery codes", Section::Account),
        name: w.t("anna.k"),
        codes: (0..10).map(|n| format!("7q3v-{n}kfw-2m9x-c5rf")).collect(),
    }
}

pub(super) fn passkey(w: &Words) -> PasskeyPage {
    let back = Reference::here("Another way", "/login/second");
    let carried = vec![("next".to_owned(), w.t("/dead-letters"))];
    PasskeyPage::show(layout(w, "Show your passkey", Section::Account), "/confirm", carried, w.t("{}"), back)
}

pub(super) fn confirm(w: &Words, own: bool) -> ConfirmPage {
    let by = if own {
        Ways::Own {
            password: Some(Field::wrong("", w.t("That is not your password."))),
            code: Some(Field::wrong("", w.t("Give a code too."))),
            passkey: true,
        }
    } else {
        Ways::Provider(
            "/login/oidc?confirm=1&next=%2F".into(),
            vec![("Reason".to_owned(), w.t("They know."))],
        )
    };
    ConfirmPage {
        layout: layout(w, "Confirm that it is you", Section::Account),
        name: w.t("anna.k"),
        what: w.t("Then the override of 6be2d310 goes on as you filled it in."),
        action: "/dead-letters/01987c3e/override".into(),
        carried: vec![
            ("action_id".to_owned(), "01987c3e".to_owned()),
            ("reason".to_owned(), w.t("They know.")),
        ],
        by,
        problem: w.some("That passkey was not taken. Try again."),
        back: Reference::here("Cancel", "/dead-letters/01987c3e/override"),
    }
}
