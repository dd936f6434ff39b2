//! How people come in.

text_enum! {
    /// With what somebody signed in.
    pub enum SignInBy {
        /// A name and a password, and a second factor where there is one.
        Password = "password",
        /// The company's own sign-in.
        Oidc = "oidc",
    }
}
