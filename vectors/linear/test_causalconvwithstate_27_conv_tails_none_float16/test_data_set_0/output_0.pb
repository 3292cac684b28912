	
BoutputJ6─иJмчлqлл2кXй─и╗хебЛе;дае╨е:A;DЛE;D╗H─IXJ2KLqLчLJM