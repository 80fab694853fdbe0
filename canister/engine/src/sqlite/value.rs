//! Values: what goes into parameters and comes out of rows.

/// A value that owns its bytes.
#[derive(Debug, Clone, PartialEq)]
pub enum Value {
    /// NULL.
    Null,
    /// INTEGER, 64 bits and signed.
    Integer(i64),
    /// REAL. SQLite stores a NaN as NULL.
    Real(f64),
    /// TEXT.
    Text(String),
    /// BLOB.
    Blob(Vec<u8>),
}

/// A value borrowed from a parameter or from a row that SQLite holds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum ValueRef<'a> {
    /// NULL.
    Null,
    /// INTEGER.
    Integer(i64),
    /// REAL.
    Real(f64),
    /// TEXT. Bytes, since SQLite does not check that what was stored as text is UTF-8.
    Text(&'a [u8]),
    /// BLOB.
    Blob(&'a [u8]),
}

impl<'a> ValueRef<'a> {
    /// The storage class, as `typeof()` names it.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Null => "null",
            Self::Integer(_) => "integer",
            Self::Real(_) => "real",
            Self::Text(_) => "text",
            Self::Blob(_) => "blob",
        }
    }

    /// The text, if this is TEXT and valid UTF-8.
    pub fn as_str(&self) -> Option<&'a str> {
        match self {
            Self::Text(bytes) => crate::text::utf8(bytes),
            _ => None,
        }
    }

    /// The bytes of a TEXT or BLOB.
    pub fn as_bytes(&self) -> Option<&'a [u8]> {
        match self {
            Self::Text(bytes) | Self::Blob(bytes) => Some(bytes),
            _ => None,
        }
    }

    /// A copy that owns its bytes. TEXT that is not UTF-8 has each bad sequence replaced by U+FFFD.
    pub fn to_value(&self) -> Value {
        match *self {
            Self::Null => Value::Null,
            Self::Integer(integer) => Value::Integer(integer),
            Self::Real(real) => Value::Real(real),
            Self::Text(bytes) => Value::Text(String::from_utf8_lossy(bytes).into_owned()),
            Self::Blob(bytes) => Value::Blob(bytes.to_vec()),
        }
    }
}

impl<'a> From<&'a str> for ValueRef<'a> {
    fn from(text: &'a str) -> Self {
        Self::Text(text.as_bytes())
    }
}

impl<'a> From<&'a [u8]> for ValueRef<'a> {
    fn from(blob: &'a [u8]) -> Self {
        Self::Blob(blob)
    }
}

impl From<i64> for ValueRef<'_> {
    fn from(integer: i64) -> Self {
        Self::Integer(integer)
    }
}

/// Both traits are ours alone: that every parameter of a statement is bound before it steps depends on them.
mod sealed {
    pub trait Sealed {}
    pub trait Params {}
}

/// What can be bound to a parameter.
pub trait ToValue: sealed::Sealed {
    /// The value to bind, borrowed.
    fn value(&self) -> ValueRef<'_>;
}

macro_rules! to_value {
    ($($type:ty, $self:ident => $value:expr;)*) => {$(
        impl sealed::Sealed for $type {}
        impl ToValue for $type {
            #[inline]
            fn value(&$self) -> ValueRef<'_> {
                $value
            }
        }
    )*};
}

to_value! {
    i64, self => ValueRef::Integer(*self);
    i32, self => ValueRef::Integer(i64::from(*self));
    u32, self => ValueRef::Integer(i64::from(*self));
    bool, self => ValueRef::Integer(i64::from(*self));
    f64, self => ValueRef::Real(*self);
    str, self => ValueRef::Text(self.as_bytes());
    String, self => ValueRef::Text(self.as_bytes());
    [u8], self => ValueRef::Blob(self);
    Vec<u8>, self => ValueRef::Blob(self);
    ValueRef<'_>, self => *self;
    Value, self => match self {
        Value::Null => ValueRef::Null,
        Value::Integer(integer) => ValueRef::Integer(*integer),
        Value::Real(real) => ValueRef::Real(*real),
        Value::Text(text) => ValueRef::Text(text.as_bytes()),
        Value::Blob(blob) => ValueRef::Blob(blob),
    };
}

impl<T: ToValue + ?Sized> sealed::Sealed for &T {}
impl<T: ToValue + ?Sized> ToValue for &T {
    #[inline]
    fn value(&self) -> ValueRef<'_> {
        (**self).value()
    }
}

impl<T: ToValue> sealed::Sealed for Option<T> {}
impl<T: ToValue> ToValue for Option<T> {
    #[inline]
    fn value(&self) -> ValueRef<'_> {
        match self {
            Some(some) => some.value(),
            None => ValueRef::Null,
        }
    }
}

/// The parameters of a statement: in order a tuple of up to eight or a slice, by name a [`Named`].
pub trait Params: sealed::Params {
    /// How many there are.
    fn count(&self) -> usize;

    /// Hands each to `bind` with its number, which starts at 1; `number` answers that of a name.
    ///
    /// # Errors
    /// The first that `number` or `bind` answers.
    fn each<E>(
        &self,
        number: impl Fn(&str) -> Result<i32, E>,
        bind: impl FnMut(i32, ValueRef<'_>) -> Result<(), E>,
    ) -> Result<(), E>;
}

/// Parameters by name. Each parameter of the statement must be there exactly once, with or without its `:`, `@` or `$`.
///
/// ```
/// # use icsql_engine::{Named, Params, ValueRef};
/// let params = Named(&[("key", "a"), (":value", "b")]);
/// assert_eq!(params.count(), 2);
/// ```
#[derive(Debug, Clone, Copy)]
pub struct Named<'a, N, V>(pub &'a [(N, V)]);

impl<N: AsRef<str>, V: ToValue> sealed::Params for Named<'_, N, V> {}
impl<N: AsRef<str>, V: ToValue> Params for Named<'_, N, V> {
    fn count(&self) -> usize {
        self.0.len()
    }

    fn each<E>(
        &self,
        number: impl Fn(&str) -> Result<i32, E>,
        mut bind: impl FnMut(i32, ValueRef<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        self.0.iter().try_for_each(|(name, value)| bind(number(name.as_ref())?, value.value()))
    }
}

impl<T: ToValue> sealed::Params for [T] {}
impl<T: ToValue> Params for [T] {
    fn count(&self) -> usize {
        self.len()
    }

    fn each<E>(
        &self,
        _number: impl Fn(&str) -> Result<i32, E>,
        mut bind: impl FnMut(i32, ValueRef<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        (1..).zip(self).try_for_each(|(number, param)| bind(number, param.value()))
    }
}

impl<P: Params + ?Sized> sealed::Params for &P {}
impl<P: Params + ?Sized> Params for &P {
    fn count(&self) -> usize {
        (**self).count()
    }

    fn each<E>(
        &self,
        number: impl Fn(&str) -> Result<i32, E>,
        bind: impl FnMut(i32, ValueRef<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        (**self).each(number, bind)
    }
}

macro_rules! tuple_params {
    ($count:literal $(, $name:ident $number:literal)*) => {
        impl<$($name: ToValue),*> sealed::Params for ($($name,)*) {}
        impl<$($name: ToValue),*> Params for ($($name,)*) {
            fn count(&self) -> usize {
                $count
            }

            #[inline]
            #[allow(non_snake_case, unused_mut, unused_variables, reason = "generated for every length, 0 among them")]
            fn each<E>(
                &self,
                _number: impl Fn(&str) -> Result<i32, E>,
                mut bind: impl FnMut(i32, ValueRef<'_>) -> Result<(), E>,
            ) -> Result<(), E> {
                let ($($name,)*) = self;
                $(bind($number, $name.value())?;)*
                Ok(())
            }
        }
    };
}

tuple_params!(0);
tuple_params!(1, A 1);
tuple_params!(2, A 1, B 2);
tuple_params!(3, A 1, B 2, C 3);
tuple_params!(4, A 1, B 2, C 3, D 4);
tuple_params!(5, A 1, B 2, C 3, D 4, E1 5);
tuple_params!(6, A 1, B 2, C 3, D 4, E1 5, F 6);
tuple_params!(7, A 1, B 2, C 3, D 4, E1 5, F 6, G 7);
tuple_params!(8, A 1, B 2, C 3, D 4, E1 5, F 6, G 7, H 8);
