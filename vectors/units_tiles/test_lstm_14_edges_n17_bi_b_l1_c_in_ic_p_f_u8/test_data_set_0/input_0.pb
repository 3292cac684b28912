BXJDfªL6Õ_’mv w|s‚oöT²fµvÇyF£bjc‹’ÈŠÒC”K2ÏHƒ.€8}‹S
Ë¬UÔ–/ •†qq¯‹—–