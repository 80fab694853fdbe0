//! The mathematics of SQL functions, which `libc/icsql_math.h` routes here on every platform: the bits of a result do
//! not depend on where a query runs.

macro_rules! export {
    ($($symbol:literal $name:ident($($argument:ident),+);)+) => {
        $(
            // SAFETY: the prefix keeps the symbol apart from everybody else's.
            #[unsafe(export_name = $symbol)]
            extern "C" fn $name($($argument: f64),+) -> f64 {
                libm::$name($($argument),+)
            }
        )+
    };
}

export! {
    "icsql_acos" acos(x);
    "icsql_acosh" acosh(x);
    "icsql_asin" asin(x);
    "icsql_asinh" asinh(x);
    "icsql_atan" atan(x);
    "icsql_atan2" atan2(y, x);
    "icsql_atanh" atanh(x);
    "icsql_cos" cos(x);
    "icsql_cosh" cosh(x);
    "icsql_exp" exp(x);
    "icsql_fmod" fmod(x, y);
    "icsql_log" log(x);
    "icsql_log10" log10(x);
    "icsql_log2" log2(x);
    "icsql_pow" pow(x, y);
    "icsql_sin" sin(x);
    "icsql_sinh" sinh(x);
    "icsql_tan" tan(x);
    "icsql_tanh" tanh(x);
}
