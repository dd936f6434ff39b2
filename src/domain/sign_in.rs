//! How people come in.

text_enum! {
    /// With what somebody signed in.
    pub enum SignInBy {
        /// A name and a password.
        Password = "password",
        /// A passkey of theirs.
        Passkey = "passkey",
        /// The company's own sign-in.
        Oidc = "oidc",
    }
}
