//! People as an identity provider knows them.

use super::time::Timestamp;

/// Somebody whom an identity provider vouches for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identity {
    /// The provider, as it calls itself.
    pub issuer: String,
    /// Whom it means: opaque, and the same for ever. With the issuer it is who they are.
    pub subject: String,
    /// What they are called there. It can change and can be anybody's, so it says nothing of who they are.
    pub name: String,
    /// What they may be here, by what the provider says of them; absent when nothing.
    pub role: Option<String>,
    /// When they last showed the provider that it is they; absent when it does not say.
    pub asked_at: Option<Timestamp>,
}
