/* Routes the functions of <math.h> that SQLite uses and that libraries compute differently to the engine's. */
#ifndef ICSQL_MATH_H
#define ICSQL_MATH_H

#define ICSQL_MATH_1(name) double icsql_##name(double)
#define ICSQL_MATH_2(name) double icsql_##name(double, double)

ICSQL_MATH_1(acos);
ICSQL_MATH_1(acosh);
ICSQL_MATH_1(asin);
ICSQL_MATH_1(asinh);
ICSQL_MATH_1(atan);
ICSQL_MATH_1(atanh);
ICSQL_MATH_1(cos);
ICSQL_MATH_1(cosh);
ICSQL_MATH_1(exp);
ICSQL_MATH_1(log);
ICSQL_MATH_1(log10);
ICSQL_MATH_1(log2);
ICSQL_MATH_1(sin);
ICSQL_MATH_1(sinh);
ICSQL_MATH_1(tan);
ICSQL_MATH_1(tanh);
ICSQL_MATH_2(atan2);
ICSQL_MATH_2(fmod);
ICSQL_MATH_2(pow);

#define acos icsql_acos
#define acosh icsql_acosh
#define asin icsql_asin
#define asinh icsql_asinh
#define atan icsql_atan
#define atanh icsql_atanh
#define cos icsql_cos
#define cosh icsql_cosh
#define exp icsql_exp
#define log icsql_log
#define log10 icsql_log10
#define log2 icsql_log2
#define sin icsql_sin
#define sinh icsql_sinh
#define tan icsql_tan
#define tanh icsql_tanh
#define atan2 icsql_atan2
#define fmod icsql_fmod
#define pow icsql_pow

#endif
