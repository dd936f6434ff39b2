//! Which passwords are easy to guess, and how to say it. The estimate and its lists (30,000 common
//! passwords, names, words, rows of keys, dates) are zxcvbn's; the words are ours.

use zxcvbn::feedback::{Feedback, Suggestion, Warning};
use zxcvbn::zxcvbn;

/// Guesses that a password must be worth: as many as eight characters of pure chance are. Each costs
/// whoever guesses at a stolen hash some 20 ms of a core, and at the door up to a minute.
const WORTH: u64 = 100_000_000;

/// What whoever guesses tries at every desk.
const PRODUCT: [&str; 6] = ["dead letter office", "deadletteroffice", "dead", "letter", "office", "dlo"];

/// Why a password is easy to guess, for the person and with what to do; absent when it is not. Words
/// that are `near` to them count as known to whoever guesses: their name, the host.
pub(super) fn why(password: &str, near: &[String]) -> Option<String> {
    let parts = near.iter().flat_map(|text| text.split(|letter: char| !letter.is_alphanumeric()));
    let near: Vec<&str> = near.iter().map(String::as_str).chain(parts).chain(PRODUCT).collect();
    let near: Vec<&str> = near.into_iter().filter(|word| !word.is_empty()).collect();
    let found = zxcvbn(password, &near);
    if found.guesses() >= WORTH {
        return None;
    }
    let feedback = found.feedback();
    let wrong = feedback.and_then(Feedback::warning).map_or(
        "this password is easy to guess: it is, or is close to, a common one, your name or the desk's",
        warning,
    );
    // One piece of advice is read; the first that says more than "make it longer" is the best.
    let advice = feedback.map_or(&[][..], Feedback::suggestions).iter().copied().map(suggestion);
    let advice = advice.max_by_key(|words| *words != LONGER).unwrap_or(LONGER);
    let longer = if advice == LONGER { "" } else { LONGER };
    Some(format!("{wrong}. {advice} {longer}").trim_end().to_owned())
}

const LONGER: &str = "Add another word or two: rare ones are best.";

fn warning(found: Warning) -> &'static str {
    match found {
        Warning::StraightRowsOfKeysAreEasyToGuess => "a row of keys is easy to guess",
        Warning::ShortKeyboardPatternsAreEasyToGuess => "a short pattern on the keyboard is easy to guess",
        Warning::RepeatsLikeAaaAreEasyToGuess | Warning::RepeatsLikeAbcAbcAreOnlySlightlyHarderToGuess => {
            "the same again and again is easy to guess"
        }
        Warning::ThisIsATop10Password | Warning::ThisIsATop100Password => {
            "this is one of the passwords that are tried first"
        }
        Warning::ThisIsACommonPassword => "this is a common password, and common ones are tried first",
        Warning::ThisIsSimilarToACommonlyUsedPassword => "this is close to a common password",
        Warning::SequencesLikeAbcAreEasyToGuess => "letters or digits in their order are easy to guess",
        Warning::RecentYearsAreEasyToGuess => "a year of late is easy to guess",
        Warning::AWordByItselfIsEasyToGuess => "a word by itself is easy to guess",
        Warning::DatesAreOftenEasyToGuess => "a date is easy to guess",
        Warning::NamesAndSurnamesByThemselvesAreEasyToGuess
        | Warning::CommonNamesAndSurnamesAreEasyToGuess => "a name is easy to guess",
    }
}

fn suggestion(made: Suggestion) -> &'static str {
    match made {
        Suggestion::UseAFewWordsAvoidCommonPhrases => "Use a few words that do not belong together.",
        Suggestion::NoNeedForSymbolsDigitsOrUppercaseLetters => {
            "It needs no symbols, digits or capital letters."
        }
        Suggestion::AddAnotherWordOrTwo => LONGER,
        Suggestion::CapitalizationDoesntHelpVeryMuch => "A capital letter at the start hardly helps.",
        Suggestion::AllUppercaseIsAlmostAsEasyToGuessAsAllLowercase => "Capital letters hardly help.",
        Suggestion::ReversedWordsArentMuchHarderToGuess => "A word written backwards hardly helps.",
        Suggestion::PredictableSubstitutionsDontHelpVeryMuch => "An @ in the place of an a hardly helps.",
        Suggestion::UseALongerKeyboardPatternWithMoreTurns => "Words are better than rows of keys.",
        Suggestion::AvoidRepeatedWordsAndCharacters => "Say nothing twice.",
        Suggestion::AvoidSequences => "Leave out what follows in order.",
        Suggestion::AvoidRecentYears | Suggestion::AvoidYearsThatAreAssociatedWithYou => "Leave out years.",
        Suggestion::AvoidDatesAndYearsThatAreAssociatedWithYou => "Leave out dates and years.",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(password: &str) -> Option<String> {
        why(password, &["Olga Petrova".to_owned(), "desk.example.com".to_owned()])
    }

    /// Known from every list of leaked passwords, and long enough otherwise.
    const COMMON: [&str; 60] = [
        "12345678",
        "123456789",
        "1234567890",
        "password",
        "password1",
        "password123",
        "passw0rd",
        "p@ssw0rd",
        "P@ssword1",
        "qwertyuiop",
        "qwerty123",
        "1q2w3e4r",
        "1q2w3e4r5t",
        "1qaz2wsx",
        "zaq12wsx",
        "asdfghjkl",
        "iloveyou",
        "sunshine",
        "princess",
        "football",
        "baseball",
        "superman",
        "trustno1",
        "starwars",
        "whatever",
        "computer",
        "internet",
        "corvette",
        "mercedes",
        "midnight",
        "michelle",
        "jennifer",
        "jonathan",
        "samantha",
        "victoria",
        "alexander",
        "danielle",
        "blink182",
        "liverpool",
        "arsenal1",
        "chelsea1",
        "butthead",
        "welcome1",
        "letmein1",
        "letmein123",
        "admin123",
        "changeme",
        "asdfasdf",
        "abcd1234",
        "abc12345",
        "11111111",
        "00000000",
        "88888888",
        "12341234",
        "87654321",
        "11223344",
        "aaaaaaaa",
        "qazwsxedc",
        "drowssap",
        "monkey123",
    ];

    #[test]
    fn what_everybody_has_is_refused_and_so_is_what_is_close_to_it() {
        for password in COMMON {
            assert!(refused(password).is_some(), "{password}");
            assert!(refused(&password.to_uppercase()).is_some(), "{password} in capitals");
        }
    }

    #[test]
    fn what_is_known_of_the_person_and_the_desk_is_refused() {
        for password in [
            "olgapetrova",
            "Olga Petrova",
            "petrova1",
            "dead letter office",
            "DeadLetterOffice1",
            "deskexample",
            "desk.example.com",
            "example.com1",
            "dlo-office",
        ] {
            assert!(refused(password).is_some(), "{password}");
        }
        assert!(
            why("petrova-gasket-violin", &["Olga Petrova".to_owned()]).is_none(),
            "with words of its own"
        );
    }

    #[test]
    fn any_characters_are_taken_and_none_is_asked_for() {
        for password in [
            "correct horse battery",
            "wet violin gasket",
            "k7mq-x2pf-9wze",
            "läuft wie am Schnürchen",
            "пароль и мандарин",
            "犬も歩けば棒に当たる",
            "🐢 eats 🌵 slowly",
            "\t tabs and \u{0} too",
        ] {
            assert_eq!(refused(password), None, "{password}");
        }
        assert_eq!(refused(&"wet violin gasket ".repeat(50)), None);
    }

    #[test]
    fn it_is_said_what_is_wrong_and_what_to_do() {
        for (password, words) in [
            (
                "12345678",
                "this is one of the passwords that are tried first. Add another word or two: rare ones are best.",
            ),
            (
                "P@ssword1",
                "this is close to a common password. An @ in the place of an a hardly helps. Add another word",
            ),
            ("abcabcabc", "the same again and again is easy to guess. Say nothing twice. Add another"),
            (
                "dead letter office",
                "this password is easy to guess: it is, or is close to, a common one, your name",
            ),
        ] {
            let said = refused(password).unwrap();
            assert!(said.starts_with(words), "{password}: {said}");
        }
    }
}
